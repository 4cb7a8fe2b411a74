// Nothing that is equal is missed: on a few operators, every two terms that are equal (found by
// brute force, see brute_force.h) are linked by a chain of applications of the rules over these
// operators, and the smaller can be reached from the larger. The rules are those that the generator
// gives, or, which is faster, gave: those of the shipped file.
//
// The generator pairs terms with representatives of classes, keeps equations with a linear side,
// drops instances and compositions: that nothing is lost by all this is what is tested.
// More terms and operators: scripts/check_completeness.sh.
#include <gtest/gtest.h>

#include "absl/strings/str_join.h"
#include "generator/checking/check_rules.h"
#include "generator/enumeration/enumerator.h"
#include "generator/enumeration/equation.h"
#include "generator/pipeline/generate.h"
#include "generator/pipeline/steps.h"
#include "generator/preconditions/prune.h"
#include "generator/workers/local_workers.h"
#include "pcg/ir/parallel_operator.h"
#include "tests/generator/brute_force.h"
#include "tests/generator/chains.h"
#include "tests/generator/shipped_rules.h"

namespace isomer {
namespace {

using Types = std::vector<std::string>;
using Operators = std::vector<Operator>;

// The shipped rules without other operators.
std::vector<Rule> ShippedOver(const std::set<OpKind>& kinds) {
  std::vector<Rule> rules;
  for (const Rule& rule : ShippedRules().rules) {
    bool over = true;
    for (const Pattern* side : {&rule.source, &rule.target}) {
      for (const PatternNode& node : side->nodes) over &= kinds.contains(node.kind);
    }
    if (over) rules.push_back(rule);
  }
  return rules;
}

// What the generator gives for operators of these kinds, before proof.
std::vector<Rule> Generated(const std::set<OpKind>& kinds) {
  GenerateOptions options;
  options.kinds = kinds;
  Memo memo;
  const auto workers = MakeLocalWorkers(2, GeneratorSteps(nullptr));
  EXPECT_TRUE(workers.ok()) << workers.status();
  WorkQueue queue(workers->get(), &memo);
  options.queue = &queue;
  Statistics statistics;
  auto found = Generate(options, &statistics);
  EXPECT_TRUE(found.ok()) << found.status();
  std::vector<Rule> rules;
  for (GeneralRule& general : *found) rules.push_back(std::move(general.rule));
  return rules;
}

std::set<OpKind> KindsOf(const Subset& subset) {
  std::set<OpKind> kinds;
  for (const Operator& op : subset.operators[0]) kinds.insert(op.kind());
  return kinds;
}

// Equalities that generation loses because neither side uses each input once, and that no others
// give (Completeness.WithoutALinearSide): relu(x) is x or 0, so that beside relu(x) x can stand for
// it. `inner`(x, relu(x)) is `inner`(relu(x), relu(x)), as a product or under a relu.
Rule LostEquality(OpKind inner, bool under_relu) {
  const PatternRef x = PatternRef::Input(0), relu = PatternRef::Node(0);
  Rule rule;
  rule.num_inputs = 1;
  rule.ranks = {{1}, {2}};
  rule.source.nodes = {{OpKind::kRelu, {}, {x}}, {inner, {}, {x, relu}}};
  rule.target.nodes = {{OpKind::kRelu, {}, {x}}, {inner, {}, {relu, relu}}};
  for (Pattern* side : {&rule.source, &rule.target}) {
    if (under_relu) side->nodes.push_back({OpKind::kRelu, {}, {PatternRef::Node(1)}});
    side->outputs = {PatternRef::Node(static_cast<int>(side->nodes.size()) - 1)};
  }
  rule.reversible = true;
  SetId(&rule);
  return rule;
}
std::vector<Rule> LostEqualities() {
  return {LostEquality(OpKind::kMul, false), LostEquality(OpKind::kAdd, true)};
}

// The way back of replicate(matmul(x0, x1)) -> matmul(replicate(x0), replicate(x1)) holds only
// where the copies of x0 and x1 are enough without the Replicates, which no condition says.
Rule ReplicateAfterMatMul() {
  const AttributePattern degree{"degree", IntExpr::Variable("d")};
  const PatternRef x0 = PatternRef::Input(0), x1 = PatternRef::Input(1);
  auto node = [](int n) { return PatternRef::Node(n); };
  Rule rule;
  rule.num_inputs = 2;
  rule.variables = {{"d", VariableKind::kDegree}};
  rule.ranks = {{2, 2}};
  rule.source = {{{OpKind::kReplicate, {degree}, {x0}},
                  {OpKind::kReplicate, {degree}, {x1}},
                  {OpKind::kMatMul, {}, {node(0), node(1)}}},
                 {node(2)}};
  rule.target = {{{OpKind::kMatMul, {}, {x0, x1}}, {OpKind::kReplicate, {degree}, {node(0)}}},
                 {node(1)}};
  SetId(&rule);
  return rule;
}

void ExpectComplete(const Subset& subset, const std::vector<Rule>& rules) {
  SCOPED_TRACE(subset.name);
  // Graphs outside of the terms that a chain between two of them may pass through.
  constexpr int kMostExpanded = 60;
  const Terms terms(subset);
  const std::vector<std::pair<int, int>> pairs = terms.EqualPairs();
  Chains chains(rules);
  std::vector<int> numbers;
  for (int term = 0; term < terms.size(); ++term) {
    numbers.push_back(chains.Add(terms.GraphOf(term)));
  }
  for (int number : numbers) chains.Expand(number);
  std::vector<std::string> missed;
  for (const auto& [a, b] : pairs) {
    const bool shrinks = terms.OperatorsOf(b) < terms.OperatorsOf(a);
    const int from = shrinks ? a : b, to = shrinks ? b : a;
    const bool found = terms.OperatorsOf(a) == terms.OperatorsOf(b)
                           ? chains.Search(numbers[a], numbers[b], kMostExpanded)
                           : chains.Reaches(numbers[from], numbers[to], kMostExpanded);
    if (!found) missed.push_back(terms.Text(from) + " = " + terms.Text(to));
  }
  EXPECT_FALSE(pairs.empty());
  constexpr size_t kMostShown = 20;
  const size_t count = missed.size();
  missed.resize(std::min(count, kMostShown));
  EXPECT_EQ(count, 0u) << "of " << pairs.size() << " pairs among " << terms.size() << " terms:\n"
                       << absl::StrJoin(missed, "\n");
}

void ExpectShippedRulesComplete(const Subset& subset) {
  ExpectComplete(subset, ShippedOver(KindsOf(subset)));
}
// `lost`: equalities that are known to be missed.
void ExpectGeneratedRulesComplete(const Subset& subset, const std::vector<Rule>& lost = {}) {
  std::vector<Rule> rules = Generated(KindsOf(subset));
  rules.insert(rules.end(), lost.begin(), lost.end());
  ExpectComplete(subset, rules);
}

Operator Of(OpKind kind) { return Operator(kind); }
Operator Scale(double factor) { return Operator(OpKind::kScale, {{"factor", factor}}); }
Operator Concat(int64_t axis) { return Operator(OpKind::kConcat, {{"axis", axis}}); }
Operator Split(int64_t axis, int64_t size) {
  return Operator(OpKind::kSplit, {{"axis", axis}, {"sizes", std::vector<Extent>{size, size}}});
}
Operator Transpose() {
  return Operator(OpKind::kTranspose, {{"perm", std::vector<int64_t>{1, 0}}});
}

// `count` square matrices, of size 4 in one world and 6 in the other.
std::array<Types, kWorlds> Squares(int count) {
  return {Types(count, "f32[4,4]"), Types(count, "f32[6,6]")};
}
std::array<Operators, kWorlds> InBoth(const Operators& operators) { return {operators, operators}; }

// x0, and x1 and x2 that it can be multiplied by.
const std::array<Types, kWorlds> kFactors = {Types{"f32[4,6]", "f32[6,2]", "f32[6,2]"},
                                             Types{"f32[5,3]", "f32[3,4]", "f32[3,4]"}};
const Operators kSum = {Of(OpKind::kAdd), Scale(3), Scale(2), Of(OpKind::kRelu)};
const Operators kProduct = {Of(OpKind::kMatMul), Of(OpKind::kAdd)};
const Operators kJoin = {Of(OpKind::kMatMul), Concat(-1), Concat(-2)};
const Operators kTwist = {Of(OpKind::kMul), Transpose()};
const Operators kPartials = {Of(OpKind::kAdd), Reduce(2), Replicate(2)};
const Operators kSpread = {Of(OpKind::kMatMul), Partition(-1, 2), Partition(-2, 2), Combine(-1, 2),
                           Combine(-2, 2),      Replicate(2),     Reduce(2)};
const std::array<Operators, kWorlds> kCut = {
    Operators{Concat(-1), Concat(-2), Split(-1, 4), Split(-2, 4)},
    Operators{Concat(-1), Concat(-2), Split(-1, 6), Split(-2, 6)}};

Subset SumsAndRelu(int size) { return {"add, scale, relu", Squares(3), InBoth(kSum), size}; }
Subset Distribution(int size) { return {"matmul, add", Squares(3), InBoth(kProduct), size}; }
Subset Twists(int size) { return {"mul, transpose", Squares(3), InBoth(kTwist), size}; }
Subset SumsOfPartials(int size) {
  return {"add, reduce, replicate",
          {Types{"f32[4,4] p2", "f32[4,4] p2", "f32[4,4]"},
           Types{"f32[6,2] p2", "f32[6,2] p2", "f32[6,2]"}},
          InBoth(kPartials),
          size};
}
Subset ReplicatedSums(int size) {
  return {"add, replicate", Squares(2), InBoth({Of(OpKind::kAdd), Replicate(2)}), size};
}
Subset SpreadContraction(int size) {
  return {"matmul, x0 partitioned by columns, x1 by rows",
          {Types{"f32[4,4:2]", "f32[4:2,4]"}, Types{"f32[6,4:2]", "f32[4:2,8]"}},
          InBoth(kSpread),
          size};
}

TEST(Completeness, OfSumsAndRelu) { ExpectShippedRulesComplete(SumsAndRelu(2)); }
TEST(Completeness, OfMatMulDistributed) {
  ExpectShippedRulesComplete(Distribution(2));
  ExpectShippedRulesComplete({"matmul, add; not square", kFactors, InBoth(kProduct), 3});
}
TEST(Completeness, OfMatMulsJoinedAndCut) {
  ExpectShippedRulesComplete({"matmul, concat", kFactors, InBoth(kJoin), 3});
  ExpectShippedRulesComplete({"concat, split", Squares(2), kCut, 3});
}
TEST(Completeness, OfMulUnderTranspose) {
  ExpectShippedRulesComplete(Twists(3));
  ExpectGeneratedRulesComplete(Twists(2));
}
TEST(Completeness, OfSumsOfPartials) {
  ExpectShippedRulesComplete(SumsOfPartials(2));
  ExpectGeneratedRulesComplete(SumsOfPartials(3));
}
// A rule for one direction is no reason to drop the other.
TEST(Completeness, OfReplicatedSums) { ExpectGeneratedRulesComplete(ReplicatedSums(3)); }
TEST(Completeness, OfMatMulOfSpreadOperands) {
  ExpectShippedRulesComplete(SpreadContraction(2));
  ExpectShippedRulesComplete({"matmul of partials",
                              {Types{"f32[4,4] p2", "f32[4,4]"}, Types{"f32[6,4] p2", "f32[4,8]"}},
                              InBoth(kSpread),
                              2});
  ExpectShippedRulesComplete(
      {"matmul of rows",
       {Types{"f32[4:2,4]", "f32[4,4] c2"}, Types{"f32[6:2,4]", "f32[4,8] c2"}},
       InBoth(kSpread),
       2});
}

TEST(Completeness, LostEqualitiesAreTrue) {
  for (const RuleCheck& check : CheckRules(LostEqualities(), {.instances = 100}, [] {})) {
    EXPECT_EQ(check.failure, "") << check.ToString();
  }
}
TEST(Completeness, OfMaximaAndRelu) {
  ExpectGeneratedRulesComplete(
      {"maximum, relu", Squares(3), InBoth({Of(OpKind::kMaximum), Of(OpKind::kRelu)}), 2});
}

// Equations that enumeration finds where it keeps those without a side that uses each input once,
// too: `all`, and those of them that `rules` do not link.
struct NonlinearEquations {
  int all = 0;
  std::vector<std::string> unlinked;
};
NonlinearEquations WithoutLinearSide(const Subset& subset, const std::vector<Rule>& rules) {
  Configuration configuration{subset.name, {}, subset.operators[0], subset.max_operators};
  for (const std::string& type : subset.inputs[0]) {
    configuration.inputs.push_back(*ParseTensorType(type));
  }
  const auto enumerate = [&](bool every_side) {
    configuration.every_side = every_side;
    TypeOracle oracle;
    Random random(1);
    Statistics statistics;
    return Enumerate(configuration, &oracle, &random, &statistics);
  };
  std::set<std::string> linear;
  for (const Candidate& candidate : enumerate(false)) linear.insert(CanonicalName(candidate));
  NonlinearEquations result;
  Chains chains(rules);
  for (const Candidate& candidate : enumerate(true)) {
    if (linear.contains(CanonicalName(candidate))) continue;
    ++result.all;
    constexpr int kMostExpanded = 60;
    const auto graphs = GraphsOf(candidate);
    if (!graphs.ok() || graphs->source.outputs().size() != 1) continue;
    const int source = chains.Add(graphs->source), target = chains.Add(graphs->target);
    chains.Expand(source);
    chains.Expand(target);
    if (!chains.Search(source, target, kMostExpanded)) {
      result.unlinked.push_back(ConstantRule(candidate).ToString());
    }
  }
  return result;
}
// `unlinked`: those that the shipped rules do not link.
void ExpectWithoutLinearSide(const Subset& subset, const std::vector<std::string>& unlinked = {}) {
  SCOPED_TRACE(subset.name);
  const NonlinearEquations found = WithoutLinearSide(subset, ShippedOver(KindsOf(subset)));
  EXPECT_GT(found.all, 0);
  EXPECT_EQ(found.unlinked, unlinked);
}

// That such an equation is another with inputs made equal, or a composition, is true of operators
// that add and multiply, as far as enumeration of both kinds sees. It is no theorem: relu refutes
// it.
TEST(Completeness, WithoutALinearSide) {
  ExpectWithoutLinearSide(Distribution(3));
  ExpectWithoutLinearSide(Twists(3));
  ExpectWithoutLinearSide({"add, scale", Squares(2), InBoth({Of(OpKind::kAdd), Scale(3)}), 3});
  ExpectWithoutLinearSide({"mul, add, relu", Squares(2),
                           InBoth({Of(OpKind::kMul), Of(OpKind::kAdd), Of(OpKind::kRelu)}), 2},
                          {"mul(relu(x0), relu(x0)) -> mul(x0, relu(x0))"});
}

// A minute or so each: run by scripts/check_completeness.sh.
class DISABLED_CompletenessAtLength : public testing::Test {};

TEST_F(DISABLED_CompletenessAtLength, OfSumsAndRelu) {
  ExpectGeneratedRulesComplete(SumsAndRelu(3), LostEqualities());
}
TEST_F(DISABLED_CompletenessAtLength, OfMatMulDistributed) {
  ExpectGeneratedRulesComplete(Distribution(3));
}
TEST_F(DISABLED_CompletenessAtLength, OfMulUnderTranspose) {
  ExpectGeneratedRulesComplete(Twists(3));
}
TEST_F(DISABLED_CompletenessAtLength, OfMatMulOfTransposed) {
  ExpectGeneratedRulesComplete({"matmul, transpose, scale", Squares(2),
                                InBoth({Of(OpKind::kMatMul), Transpose(), Scale(3)}), 3});
}
TEST_F(DISABLED_CompletenessAtLength, OfMulAddRelu) {
  ExpectGeneratedRulesComplete({"mul, add, relu", Squares(2),
                                InBoth({Of(OpKind::kMul), Of(OpKind::kAdd), Of(OpKind::kRelu)}), 3},
                               LostEqualities());
}
TEST_F(DISABLED_CompletenessAtLength, OfConcatUnderElementwise) {
  ExpectGeneratedRulesComplete(
      {"concat, add, relu, transpose", Squares(2),
       InBoth({Concat(-1), Concat(-2), Of(OpKind::kAdd), Of(OpKind::kRelu), Transpose()}), 3},
      LostEqualities());
}
TEST_F(DISABLED_CompletenessAtLength, OfMatMulsJoinedAndCut) {
  ExpectGeneratedRulesComplete({"matmul, concat", kFactors, InBoth(kJoin), 3});
  ExpectGeneratedRulesComplete({"concat, split", Squares(2), kCut, 3});
}
TEST_F(DISABLED_CompletenessAtLength, OfMatMulOfSpreadOperands) {
  ExpectGeneratedRulesComplete(SpreadContraction(3), {ReplicateAfterMatMul()});
}
TEST_F(DISABLED_CompletenessAtLength, OfElementwiseOfSpreadOperands) {
  Operators operators = kSpread;
  operators[0] = Of(OpKind::kAdd);
  operators.push_back(Of(OpKind::kRelu));
  ExpectGeneratedRulesComplete(
      {"add, relu of rows",
       {Types{"f32[4:2,4]", "f32[4:2,4]"}, Types{"f32[6:2,8]", "f32[6:2,8]"}},
       InBoth(operators),
       3},
      LostEqualities());
}

}  // namespace
}  // namespace isomer
