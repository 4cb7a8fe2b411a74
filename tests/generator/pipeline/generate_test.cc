// The steps of generation, each on something small.
#include "generator/pipeline/generate.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "generator/assignments/sample_calls.h"
#include "generator/assignments/trial.h"
#include "generator/assignments/vocabulary.h"
#include "generator/enumeration/enumerator.h"
#include "generator/preconditions/settle.h"
#include "generator/schemas/expansion.h"
#include "pcg/ir/operator_traits.h"
#include "pcg/ir/parallel_operator.h"
#include "pcg/ir/type_inference.h"

namespace isomer {
namespace {

Statistics statistics;
TypeOracle oracle;

Candidate Rows() {
  Candidate candidate;
  candidate.inputs = {SequentialType({4, 4}), SequentialType({4, 4})};
  const PatternRef x0 = PatternRef::Input(0), x1 = PatternRef::Input(1);
  const AttributePattern axis{"axis", IntExpr::Constant(-2)},
      degree{"degree", IntExpr::Constant(2)};
  candidate.source.nodes = {{OpKind::kMatMul, {}, {x0, x1}}};
  candidate.source.outputs = {PatternRef::Node(0)};
  candidate.target.nodes = {{OpKind::kPartition, {axis, degree}, {x0}},
                            {OpKind::kReplicate, {degree}, {x1}},
                            {OpKind::kMatMul, {}, {PatternRef::Node(0), PatternRef::Node(1)}},
                            {OpKind::kCombine, {axis, degree}, {PatternRef::Node(2)}}};
  candidate.target.outputs = {PatternRef::Node(3)};
  return candidate;
}

TEST(Generalize, LearnsThatTheDegreeMustDivideTheRows) {
  Random random(1);
  const auto general = Generalize(Rows(), &oracle, &random);
  ASSERT_TRUE(general.has_value());
  const std::vector<Condition>& conditions = general->rule.conditions;
  EXPECT_TRUE(std::any_of(conditions.begin(), conditions.end(), [](const Condition& c) {
    return c.kind == Condition::Kind::kDivides && c.input == 0;
  })) << general->rule.ToString();
  EXPECT_TRUE(HoldsAround(general->rule, general->found, 30, false, &oracle, &random));
  const auto& ranks = general->rule.ranks;
  EXPECT_NE(std::find(ranks.begin(), ranks.end(), std::vector<int>{3, 2}), ranks.end());
}

TEST(Generalize, RefusesWhatHoldsForSquaresOnly) {
  // transpose(x) has the type of x where x is square; the values differ.
  Candidate candidate;
  candidate.inputs = {SequentialType({4, 4})};
  candidate.source.nodes = {{OpKind::kTranspose, {{"perm", SwapAxes{}}}, {PatternRef::Input(0)}}};
  candidate.source.outputs = {PatternRef::Node(0)};
  candidate.target.outputs = {PatternRef::Input(0)};
  Random random(1);
  EXPECT_FALSE(Generalize(candidate, &oracle, &random).has_value());
}

TEST(Generalize, WrongMutantsDoNotSettle) {
  for (int mutant = 0; mutant < 4; ++mutant) {
    Candidate candidate = Rows();
    auto& nodes = candidate.target.nodes;
    if (mutant == 0) nodes[3].attributes[0].value = IntExpr::Constant(-1);  // combined elsewhere
    if (mutant == 1) std::swap(nodes[2].inputs[0], nodes[2].inputs[1]);
    if (mutant == 2) nodes[1].kind = OpKind::kReduce;
    if (mutant == 3) candidate.target.outputs = {PatternRef::Node(2)};  // not combined
    Random random(1);
    EXPECT_FALSE(Generalize(candidate, &oracle, &random).has_value()) << mutant;
  }
}

TEST(Expansions, OfEveryDeclaredOperatorCoverEveryPartitionableDim) {
  for (OpKind kind : AllOpKinds()) {
    if (IsLeaf(kind) || IsParallel(kind)) continue;
    Random random(1);
    const std::vector<GeneralRule> rules = FindExpansions(kind, &oracle, &random, &statistics);
    const std::vector<OperatorCall> calls = SampleCalls(kind);
    ASSERT_FALSE(calls.empty()) << OpName(kind);
    for (const OperatorCall& call : calls) {
      for (const SplittableDim& dim : SplittableDims(call.op, call.operands)) {
        if (dim.size % 2 != 0) continue;
        const bool found = std::any_of(rules.begin(), rules.end(), [&](const GeneralRule& general) {
          if (general.rule.conditions.empty()) return false;
          const Condition& c = general.rule.conditions[0];
          auto same = [](const auto& expressions, const auto& axes) {
            return std::equal(
                expressions.begin(), expressions.end(), axes.begin(), axes.end(),
                [](const auto& e, const auto& a) { return e.has_value() == a.has_value(); });
          };
          // Operands of Add and Mul may be exchanged.
          std::vector<std::optional<int64_t>> exchanged = dim.operand_axes;
          if (IsCommutative(kind)) std::swap(exchanged[0], exchanged[1]);
          return (same(c.operand_axes, dim.operand_axes) || same(c.operand_axes, exchanged)) &&
                 same(c.output_axes, dim.output_axes);
        });
        EXPECT_TRUE(found) << call.op.ToString() << " dim " << dim.dim;
      }
    }
  }
}

TEST(SampleCalls, TypeCheck) {
  for (OpKind kind : AllOpKinds()) {
    int good = 0;
    for (const OperatorCall& call : SampleCalls(kind))
      good += InferTypes(call.op, call.operands).ok();
    EXPECT_EQ(good > 0, !IsLeaf(kind) && !IsParallel(kind)) << OpName(kind);
  }
}

TEST(Enumerator, FindsEachEquationOnceUpToNames) {
  const TensorType square = SequentialType({4, 4});
  const Configuration configuration{
      "test", {square, square, square}, {Operator(OpKind::kAdd), Operator(OpKind::kRelu)}, 2};
  Random random(1);
  Statistics counts;
  std::set<std::string> found;
  for (const Candidate& c : Enumerate(configuration, &oracle, &random, &counts)) {
    found.insert(ConstantRule(c).ToString());
  }
  EXPECT_TRUE(found.count("relu(relu(x0)) -> relu(x0)"));
  EXPECT_TRUE(found.count("add(x0, add(x1, x2)) -> add(x1, add(x0, x2))"));
  // And x + (y + z) with z = x, which the equation above says.
  EXPECT_LE(found.size(), 4u) << *found.rbegin();
}

// Many more terms of the last size than one thread is given at a time.
TEST(Enumerator, SameEquationsInTheSameOrderForAnyNumberOfThreads) {
  const TensorType square = SequentialType({4, 4});
  const Configuration configuration{
      "test",
      {square, square, square},
      {Operator(OpKind::kMatMul), Operator(OpKind::kAdd), Operator(OpKind::kMul),
       Operator(OpKind::kRelu), Operator(OpKind::kConcat, {{"axis", int64_t{1}}}),
       *ParseOperator("split(axis=1,sizes=[4,4])"), *ParseOperator("transpose(perm=[1,0])")},
      4};
  std::vector<std::string> expected;
  for (const int threads : {1, 2, 3}) {
    Random random(1);
    Statistics counts;
    std::vector<std::string> found;
    for (const Candidate& c : Enumerate(configuration, &oracle, &random, &counts, threads)) {
      found.push_back(ConstantRule(c).ToString());
    }
    if (threads == 1) expected = found;
    EXPECT_EQ(found, expected) << threads << " threads";
    EXPECT_GT(counts.graphs_enumerated, 50000);
  }
  EXPECT_GT(expected.size(), 100u);
}

TEST(Generate, SameSeedSameRules) {
  GenerateOptions options;
  options.kinds = {OpKind::kRelu, OpKind::kScale, OpKind::kPartition, OpKind::kCombine};
  options.max_operators = 2;
  std::vector<std::string> runs[2];
  for (auto& run : runs) {
    Statistics counts;
    const auto rules = Generate(options, &counts);
    ASSERT_TRUE(rules.ok()) << rules.status();
    for (const GeneralRule& rule : *rules) {
      EXPECT_TRUE(ValidateRule(rule.rule).ok()) << ValidateRule(rule.rule);
      run.push_back(rule.rule.id);
    }
    EXPECT_GT(counts.pruned.size(), 0u);
  }
  EXPECT_EQ(runs[0], runs[1]);
  EXPECT_GT(runs[0].size(), 8u);
}

}  // namespace
}  // namespace isomer
