// Matching and rewriting on graphs small enough to check by hand.
#include "rules/matching/rewrite.h"

#include <gtest/gtest.h>

#include "pcg/ir/parallel_operator.h"

namespace isomer {
namespace {

const PatternRef x0 = PatternRef::Input(0), x1 = PatternRef::Input(1), x2 = PatternRef::Input(2);
const AttributePattern kDegreeD{"degree", IntExpr::Variable("d")};
const AttributePattern kAxisI{"axis", IntExpr::Variable("i")};

// combine(partition(x0; i, d); i, d) -> x0
Rule CancelRule() {
  Rule rule;
  rule.num_inputs = 1;
  rule.variables = {{"i", VariableKind::kAxis}, {"d", VariableKind::kDegree}};
  rule.ranks = {{1}, {2}, {3}};
  rule.source.nodes = {{OpKind::kPartition, {kAxisI, kDegreeD}, {x0}},
                       {OpKind::kCombine, {kAxisI, kDegreeD}, {PatternRef::Node(0)}}};
  rule.source.outputs = {PatternRef::Node(1)};
  rule.target.outputs = {x0};
  SetId(&rule);
  return rule;
}

// x0 -> combine(partition(x0; i, d); i, d) if d*degree divides size(x0,i)
Rule IntroduceRule() {
  Rule rule = CancelRule();
  std::swap(rule.source, rule.target);
  rule.conditions = {{.kind = Condition::Kind::kDivides,
                      .left = IntExpr::Variable("d"),
                      .right = IntExpr::Variable("i"),
                      .input = 0}};
  SetId(&rule);
  return rule;
}

// add(matmul(x0, x1), matmul(x0, x2)) -> matmul(x0, add(x1, x2)) if type(x1) == type(x2)
Rule FactorRule() {
  Rule rule;
  rule.num_inputs = 3;
  rule.ranks = {{2, 2, 2}};
  rule.conditions = {{.kind = Condition::Kind::kSameType, .input = 1, .input_b = 2}};
  rule.source.nodes = {{OpKind::kMatMul, {}, {x0, x1}},
                       {OpKind::kMatMul, {}, {x0, x2}},
                       {OpKind::kAdd, {}, {PatternRef::Node(0), PatternRef::Node(1)}}};
  rule.source.outputs = {PatternRef::Node(2)};
  rule.target.nodes = {{OpKind::kAdd, {}, {x1, x2}},
                       {OpKind::kMatMul, {}, {x0, PatternRef::Node(0)}}};
  rule.target.outputs = {PatternRef::Node(1)};
  SetId(&rule);
  return rule;
}

// {matmul(x0, x1), matmul(x0, x2)} -> the parts of matmul(x0, concat(x1, x2))
Rule MergeRule() {
  Rule rule;
  rule.num_inputs = 3;
  rule.ranks = {{2, 2, 2}};
  rule.source.nodes = {{OpKind::kMatMul, {}, {x0, x1}}, {OpKind::kMatMul, {}, {x0, x2}}};
  rule.source.outputs = {PatternRef::Node(0), PatternRef::Node(1)};
  const AttributePattern last{"axis", IntExpr::Constant(-1)};
  rule.target.nodes = {
      {OpKind::kConcat, {last}, {x1, x2}},
      {OpKind::kMatMul, {}, {x0, PatternRef::Node(0)}},
      {OpKind::kSplit,
       {last, {"sizes", std::vector<IntExpr>{IntExpr::SizeOf(1, -1), IntExpr::SizeOf(2, -1)}}},
       {PatternRef::Node(1)}}};
  rule.target.outputs = {PatternRef::Node(2, 0), PatternRef::Node(2, 1)};
  SetId(&rule);
  return rule;
}

TEST(Matcher, AxesFromFrontAndEndAreOneAxis) {
  for (const int64_t axis : {0, -2}) {
    Graph graph;
    const TensorRef x = graph.AddInput("x", SequentialType({8, 4}));
    const TensorRef p = *graph.AddOp(Partition(0, 2), {x});
    graph.AddOutput("y", *graph.AddOp(Combine(axis, 2), {p}));
    const auto steps = FindMatches(graph, CancelRule());
    ASSERT_EQ(steps.size(), 1u);
    EXPECT_EQ(steps[0].variables.at("i"), -2);
    EXPECT_EQ(steps[0].variables.at("d"), 2);
    ASSERT_TRUE(ApplyStep(CancelRule(), steps[0], &graph).ok());
    EXPECT_EQ(graph.outputs()[0].tensor, x);
  }
}

TEST(Matcher, OtherDegreesDoNotCancel) {
  Graph graph;
  const TensorRef x = graph.AddInput("x", SequentialType({8, 4}));
  const TensorRef p = *graph.AddOp(Partition(0, 4), {x});
  graph.AddOutput("y", *graph.AddOp(Combine(0, 2), {p}));
  EXPECT_TRUE(FindMatches(graph, CancelRule()).empty());
}

// partition(combine(x0; i, d); i, d*e) -> partition(x0; i, e): d is met after d*e.
TEST(Matcher, AProductIsSolvedWhenItsFactorComesLater) {
  Rule rule = CancelRule();
  rule.variables.push_back({"e", VariableKind::kDegree});
  rule.source.nodes = {{OpKind::kCombine, {kAxisI, kDegreeD}, {x0}},
                       {OpKind::kPartition,
                        {kAxisI, {"degree", IntExpr::Product("d", "e")}},
                        {PatternRef::Node(0)}}};
  rule.target.nodes = {{OpKind::kPartition, {kAxisI, {"degree", IntExpr::Variable("e")}}, {x0}}};
  rule.target.outputs = {PatternRef::Node(0)};
  SetId(&rule);
  for (const int64_t degree : {6, 4}) {
    Graph graph;
    TensorType type = SequentialType({12, 4});
    type.dims[0].degree = 3;
    const TensorRef x = graph.AddInput("x", type);
    const TensorRef whole = *graph.AddOp(Combine(0, 3), {x});
    graph.AddOutput("y", *graph.AddOp(Partition(0, degree), {whole}));
    const auto steps = FindMatches(graph, rule);
    ASSERT_EQ(steps.size(), degree == 6 ? 1u : 0u);
    if (steps.empty()) continue;
    EXPECT_EQ(steps[0].variables.at("e"), 2);
    EXPECT_TRUE(ApplyStep(rule, steps[0], &graph).ok());
  }
}

TEST(Matcher, IntroducedVariablesAreGivenAndAxesAreTried) {
  Graph graph;
  const TensorRef x = graph.AddInput("x", SequentialType({8, 3}));
  graph.AddOutput("y", x);
  EXPECT_TRUE(FindMatches(graph, IntroduceRule()).empty());
  Binding given;
  given.variables["d"] = 2;
  const auto steps = FindMatches(graph, IntroduceRule(), given);
  ASSERT_EQ(steps.size(), 1u);  // 2 divides 8, not 3.
  EXPECT_EQ(steps[0].variables.at("i"), -2);
  ASSERT_TRUE(ApplyStep(IntroduceRule(), steps[0], &graph).ok());
  EXPECT_TRUE(graph.Validate().ok()) << graph.Validate();
  EXPECT_EQ(graph.node(graph.outputs()[0].tensor.node).op.kind(), OpKind::kCombine);
}

TEST(Matcher, CommutativeOperandsEitherWay) {
  Graph graph;
  const TensorRef a = graph.AddInput("a", SequentialType({4, 4}));
  const TensorRef b = graph.AddInput("b", SequentialType({4, 4}));
  const TensorRef c = graph.AddInput("c", SequentialType({4, 4}));
  const TensorRef ab = *graph.AddOp(OpKind::kMatMul, {a, b});
  const TensorRef ac = *graph.AddOp(OpKind::kMatMul, {a, c});
  graph.AddOutput("y", *graph.AddOp(OpKind::kAdd, {ac, ab}));
  const auto steps = FindMatches(graph, FactorRule());
  EXPECT_EQ(steps.size(), 2u);
  for (const DerivationStep& step : steps) {
    Graph copy = graph;
    ASSERT_TRUE(ApplyStep(FactorRule(), step, &copy).ok());
    EXPECT_TRUE(copy.Validate().ok());
    EXPECT_EQ(copy.Canonical().num_nodes(), 5);
  }
}

TEST(Matcher, SharedInnerNodesStayForTheirOtherUsers) {
  Graph graph;
  const TensorRef x = graph.AddInput("x", SequentialType({8, 4}));
  const TensorRef p = *graph.AddOp(Partition(0, 2), {x});
  graph.AddOutput("y", *graph.AddOp(Combine(0, 2), {p}));
  graph.AddOutput("z", *graph.AddOp(OpKind::kRelu, {p}));
  const auto steps = FindMatches(graph, CancelRule());
  ASSERT_EQ(steps.size(), 1u);
  ASSERT_TRUE(ApplyStep(CancelRule(), steps[0], &graph).ok());
  EXPECT_TRUE(graph.Validate().ok());
  EXPECT_EQ(graph.Canonical().num_nodes(), 3);
}

TEST(Matcher, SeveralOutputsMergeWhereNoneDependsOnAnother) {
  Graph graph;
  const TensorRef x = graph.AddInput("x", SequentialType({4, 6}));
  const TensorRef q = graph.AddWeight("q", SequentialType({6, 8}));
  const TensorRef k = graph.AddWeight("k", SequentialType({6, 2}));
  graph.AddOutput("xq", *graph.AddOp(OpKind::kMatMul, {x, q}));
  graph.AddOutput("xk", *graph.AddOp(OpKind::kMatMul, {x, k}));
  const auto steps = FindMatches(graph, MergeRule());
  ASSERT_EQ(steps.size(), 2u);  // either first
  ASSERT_TRUE(ApplyStep(MergeRule(), steps[0], &graph).ok());
  EXPECT_TRUE(graph.Validate().ok());
  EXPECT_EQ(graph.type(graph.outputs()[0].tensor), SequentialType({4, 8}));
  EXPECT_EQ(graph.type(graph.outputs()[1].tensor), SequentialType({4, 2}));

  Graph chain;  // The second MatMul's weight is made from the first one's output.
  const TensorRef a = chain.AddInput("a", SequentialType({4, 4}));
  const TensorRef b = chain.AddInput("b", SequentialType({4, 4}));
  const TensorRef ab = *chain.AddOp(OpKind::kMatMul, {a, b});
  chain.AddOutput("y", *chain.AddOp(OpKind::kMatMul, {a, ab}));
  chain.AddOutput("z", ab);
  EXPECT_TRUE(FindMatches(chain, MergeRule()).empty());
}

TEST(Matcher, NearLimitsTheSearch) {
  Graph graph;
  std::vector<TensorRef> combined;
  for (int i = 0; i < 3; ++i) {
    const TensorRef x = graph.AddInput(std::string(1, 'a' + i), SequentialType({8, 4}));
    combined.push_back(*graph.AddOp(Combine(0, 2), {*graph.AddOp(Partition(0, 2), {x})}));
    graph.AddOutput(std::string(1, 'p' + i), combined.back());
  }
  EXPECT_EQ(FindMatches(graph, CancelRule()).size(), 3u);
  const NodeId partition = graph.node(combined[1].node).inputs[0].node;
  const auto steps = FindMatches(graph, CancelRule(), {}, {partition});
  ASSERT_EQ(steps.size(), 1u);
  EXPECT_EQ(steps[0].nodes[1], combined[1].node);
  EXPECT_EQ(MatchesAt(GraphIndex(graph), CancelRule(), combined[2].node).size(), 1u);
}

TEST(ApplyStep, RefusesStepsThatDoNotFitAndLeavesTheGraph) {
  Graph graph;
  const TensorRef x = graph.AddInput("x", SequentialType({8, 4}));
  const TensorRef p = *graph.AddOp(Partition(0, 2), {x});
  const TensorRef y = *graph.AddOp(Combine(0, 2), {p});
  graph.AddOutput("y", y);
  const DerivationStep good = FindMatches(graph, CancelRule())[0];
  const std::string before = graph.ToString();
  auto refused = [&](void (*damage)(DerivationStep*)) {
    DerivationStep step = good;
    damage(&step);
    const absl::Status status = ApplyStep(CancelRule(), step, &graph);
    EXPECT_FALSE(status.ok());
    EXPECT_EQ(graph.ToString(), before);
  };
  refused([](DerivationStep* s) { s->variables["d"] = 4; });
  refused([](DerivationStep* s) { s->variables["i"] = -1; });
  refused([](DerivationStep* s) { s->variables.erase("d"); });
  refused([](DerivationStep* s) { s->nodes[0] = s->nodes[1]; });
  refused([](DerivationStep* s) { s->nodes[0] = NodeId{99}; });
  refused([](DerivationStep* s) { s->inputs[0] = TensorRef{s->nodes[0], 0}; });
  refused([](DerivationStep* s) { s->inputs.clear(); });
  EXPECT_TRUE(ApplyStep(CancelRule(), good, &graph).ok());
}

TEST(SplittableDims, OfAMatMulOfBatches) {
  const auto dims = SplittableDims(Operator(OpKind::kMatMul),
                                   {SequentialType({2, 4, 6}), SequentialType({6, 8})});
  using Axes = std::vector<std::optional<int64_t>>;
  ASSERT_EQ(dims.size(), 4u);  // b, m, n, k
  EXPECT_EQ(dims[0].operand_axes, (Axes{-3, std::nullopt}));
  EXPECT_EQ(dims[1].operand_axes, (Axes{-2, std::nullopt}));
  EXPECT_EQ(dims[2].operand_axes, (Axes{std::nullopt, -1}));
  EXPECT_EQ(dims[3].operand_axes, (Axes{-1, -2}));
  EXPECT_EQ(dims[3].output_axes, (Axes{std::nullopt}));
  EXPECT_EQ(dims[3].size, 6);
}

TEST(SplittableDims, OfAReshapeAreThoseThatStayOutermost) {
  const Operator reshape(OpKind::kReshape, {{"shape", std::vector<int64_t>{4, 2, 8}}});
  const auto dims = SplittableDims(reshape, {SequentialType({4, 16})});
  ASSERT_EQ(dims.size(), 2u);
  EXPECT_EQ(dims[0].operand_axes[0], -2);
  EXPECT_EQ(dims[0].output_axes[0], -3);
  EXPECT_EQ(dims[1].operand_axes[0], -1);
  EXPECT_EQ(dims[1].output_axes[0], -2);
  EXPECT_EQ(dims[1].size, 2);
}

TEST(Matcher, ThousandsOfNodes) {
  Graph graph;
  TensorRef x = graph.AddInput("x", SequentialType({8, 8}));
  for (int i = 0; i < 2000; ++i) {
    x = *graph.AddOp(OpKind::kRelu, {x});
    if (i % 100 == 0) x = *graph.AddOp(Combine(0, 2), {*graph.AddOp(Partition(0, 2), {x})});
  }
  graph.AddOutput("y", x);
  EXPECT_EQ(FindMatches(graph, CancelRule()).size(), 20u);
}

}  // namespace
}  // namespace isomer
