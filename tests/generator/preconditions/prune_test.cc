// What follows from rules that are known.
#include "generator/preconditions/prune.h"

#include <random>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"

namespace isomer {
namespace {

using ::testing::ElementsAre;
using ::testing::SizeIs;

PatternRef X(int i) { return PatternRef::Input(i); }
PatternRef N(int i) { return PatternRef::Node(i); }

Pattern Of(std::vector<PatternNode> nodes) {
  Pattern pattern;
  pattern.outputs = {PatternRef::Node(static_cast<int>(nodes.size()) - 1)};
  pattern.nodes = std::move(nodes);
  return pattern;
}
PatternNode Op(OpKind kind, std::vector<PatternRef> inputs) {
  return {kind, {}, std::move(inputs)};
}

Candidate Equation(Pattern source, Pattern target, int inputs) {
  return {std::move(source), std::move(target),
          std::vector<TensorType>(inputs, SequentialType({4, 4})), ""};
}

Rule RuleOf(const Candidate& candidate, const char* id, bool reversible) {
  Rule rule = ConstantRule(candidate);
  rule.reversible = reversible;
  rule.id = id;
  return rule;
}

CandidateGraphs Graphs(const Candidate& candidate) {
  absl::StatusOr<CandidateGraphs> graphs = GraphsOf(candidate);
  EXPECT_TRUE(graphs.ok()) << graphs.status();
  return *std::move(graphs);
}

// relu(relu(x)) -> relu(x)
Candidate Idempotent() {
  return Equation(Of({Op(OpKind::kRelu, {X(0)}), Op(OpKind::kRelu, {N(0)})}),
                  Of({Op(OpKind::kRelu, {X(0)})}), 1);
}

// `count` Relus in a row = `fewer` of them.
Candidate Chains(int count, int fewer) {
  auto chain = [](int length) {
    std::vector<PatternNode> nodes = {Op(OpKind::kRelu, {X(0)})};
    for (int i = 1; i < length; ++i) nodes.push_back(Op(OpKind::kRelu, {N(i - 1)}));
    return Of(nodes);
  };
  return Equation(chain(count), chain(fewer), 1);
}

TEST(FormHash, DoesNotSeeOrderOfNodesOrOfCommutingOperands) {
  // relu(x0) + tanh(x1), and tanh(x1) + relu(x0) computed the other way round.
  const CandidateGraphs sums = Graphs(Equation(
      Of({Op(OpKind::kRelu, {X(0)}), Op(OpKind::kTanh, {X(1)}), Op(OpKind::kAdd, {N(0), N(1)})}),
      Of({Op(OpKind::kTanh, {X(1)}), Op(OpKind::kRelu, {X(0)}), Op(OpKind::kAdd, {N(0), N(1)})}),
      2));
  EXPECT_EQ(FormHash(sums.source), FormHash(sums.target));
  const CandidateGraphs differences = Graphs(
      Equation(Of({Op(OpKind::kSub, {X(0), X(1)})}), Of({Op(OpKind::kSub, {X(1), X(0)})}), 2));
  EXPECT_NE(FormHash(differences.source), FormHash(differences.target));
}

TEST(Derivations, AnInstanceNamesItsRule) {
  RuleBook book;
  book.Add(RuleOf(Idempotent(), "r1", false));
  Derivations derivations(Graphs(Chains(3, 2)), 1);
  const Derivations::Result result = derivations.Find(book);
  EXPECT_EQ(result.kind, Derivations::Kind::kInstance);
  EXPECT_THAT(result.rules, ElementsAre("r1"));
}

TEST(Derivations, AnInstanceUpToTheOrderOfOperands) {
  // x0 + (x1 + x2) = x1 + (x0 + x2) and (x0 + x1) + (x2 + x3) = x0 + (x1 + (x2 + x3)).
  RuleBook book;
  book.Add(RuleOf(Equation(Of({Op(OpKind::kAdd, {X(1), X(2)}), Op(OpKind::kAdd, {X(0), N(0)})}),
                           Of({Op(OpKind::kAdd, {X(0), X(2)}), Op(OpKind::kAdd, {X(1), N(0)})}), 3),
                  "r1", false));
  Derivations derivations(
      Graphs(Equation(Of({Op(OpKind::kAdd, {X(0), X(1)}), Op(OpKind::kAdd, {X(2), X(3)}),
                          Op(OpKind::kAdd, {N(0), N(1)})}),
                      Of({Op(OpKind::kAdd, {X(2), X(3)}), Op(OpKind::kAdd, {X(1), N(0)}),
                          Op(OpKind::kAdd, {X(0), N(1)})}),
                      4)),
      1);
  EXPECT_EQ(derivations.Find(book).kind, Derivations::Kind::kInstance);
}

TEST(Derivations, StepsSayHowDeepACompositionIs) {
  RuleBook book;
  book.Add(RuleOf(Idempotent(), "r1", false));
  for (int steps = 1; steps <= 3; ++steps) {
    // One rule only shrinks: all steps are from the source.
    for (int length = 2; length <= 5; ++length) {
      Derivations derivations(Graphs(Chains(length, 1)), steps);
      const Derivations::Result result = derivations.Find(book);
      const int needed = length - 1;
      const auto kind = needed == 1       ? Derivations::Kind::kInstance
                        : needed <= steps ? Derivations::Kind::kComposition
                                          : Derivations::Kind::kNone;
      EXPECT_EQ(result.kind, kind) << steps << " steps, " << length;
      EXPECT_THAT(result.rules, SizeIs(kind == Derivations::Kind::kNone ? 0 : needed));
    }
  }
}

TEST(Derivations, FoundBitByBitAsAllAtOnce) {
  // relu(tanh(x)) = tanh(relu(x)), which need not be true, and Relu once.
  const Candidate exchange =
      Equation(Of({Op(OpKind::kTanh, {X(0)}), Op(OpKind::kRelu, {N(0)})}),
               Of({Op(OpKind::kRelu, {X(0)}), Op(OpKind::kTanh, {N(0)})}), 1);
  // relu(relu(tanh(x))) = tanh(relu(x))
  const Candidate both = Equation(
      Of({Op(OpKind::kTanh, {X(0)}), Op(OpKind::kRelu, {N(0)}), Op(OpKind::kRelu, {N(1)})}),
      exchange.target, 1);
  for (int steps : {1, 2}) {
    RuleBook book;
    Derivations derivations(Graphs(both), steps);
    EXPECT_EQ(derivations.Find(book).kind, Derivations::Kind::kNone);
    book.Add(RuleOf(Idempotent(), "r1", false));
    EXPECT_EQ(derivations.Find(book).kind, Derivations::Kind::kNone);
    book.Add(RuleOf(exchange, "r2", true));
    const Derivations::Result result = derivations.Find(book);
    EXPECT_EQ(result.kind, Derivations::Kind::kComposition);
    EXPECT_EQ(result.rules, Derivations(Graphs(both), steps).Find(book).rules);
    EXPECT_EQ(result.rules[0], "r1");
  }
}

// A random word as a chain of operators: rules about words are rules about chains.
Pattern RandomChain(size_t length, std::mt19937* random) {
  constexpr OpKind kLetters[] = {OpKind::kRelu, OpKind::kTanh, OpKind::kExp};
  std::vector<PatternNode> nodes;
  for (size_t i = 0; i < length; ++i) {
    nodes.push_back(Op(kLetters[(*random)() % 3], {i == 0 ? X(0) : N(static_cast<int>(i) - 1)}));
  }
  return Of(std::move(nodes));
}

// What was known when a candidate was appraised is not looked at again by the last step; whatever
// the order in which rules came, the outcome is that of all rules at once.
TEST(Derivations, OfManyRulesFoundBitByBitAsAllAtOnce) {
  std::mt19937 random(1);
  int composed = 0;
  for (int steps : {1, 2, 3}) {
    for (int round = 0; round < 8; ++round) {
      RuleBook book;
      std::vector<Derivations> derivations;
      std::vector<CandidateGraphs> graphs;
      for (int i = 0; i < 6; ++i) {
        graphs.push_back(Graphs(Equation(RandomChain(2 + random() % 3, &random),
                                         RandomChain(1 + random() % 3, &random), 1)));
        derivations.emplace_back(graphs.back(), steps);
      }
      for (int r = 0; r < 12; ++r) {
        const std::string id = absl::StrCat("r", r);
        book.Add(RuleOf(Equation(RandomChain(1 + random() % 2, &random),
                                 RandomChain(1 + random() % 3, &random), 1),
                        id.c_str(), random() % 2 == 0));
        for (size_t i = 0; i < graphs.size(); ++i) {
          if (random() % 3 == 0) continue;  // Some news come together.
          const Derivations::Kind kind = Derivations(graphs[i], steps).Find(book).kind;
          ASSERT_EQ(derivations[i].Find(book).kind, kind) << steps << " steps, round " << round;
          composed += kind == Derivations::Kind::kComposition;
        }
      }
    }
  }
  EXPECT_GT(composed, 60);  // Else nothing was tried.
}

}  // namespace
}  // namespace isomer
