#include "rules/equality/egraph.h"

#include <algorithm>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "optimizer/machine/machine.h"
#include "optimizer/search/optimizer.h"
#include "optimizer/sharding/compute_graph.h"
#include "optimizer/substitution/egraph_extract.h"
#include "optimizer/substitution/egraph_search.h"
#include "optimizer/substitution/egraph_selection.h"
#include "pcg/support/data_path.h"
#include "rules/equality/saturation.h"
#include "rules/matching/rewrite.h"
#include "tests/optimizer/plan_holds.h"
#include "tests/optimizer/test_machine.h"

namespace isomer {
namespace {

const RuleSet& DefaultRules() {
  static const RuleSet* rules = new RuleSet(LoadRules(DataPath("rules/default.rules")).value());
  return *rules;
}

TensorType F32(const std::vector<int64_t>& sizes) { return SequentialType(sizes); }

TensorRef Call(Graph* graph, Operator op, std::vector<TensorRef> inputs) {
  return graph->AddOp(std::move(op), std::move(inputs)).value();
}

int CountKind(const Graph& graph, OpKind kind) {
  const std::vector<NodeId> order = graph.TopologicalOrder();
  return static_cast<int>(std::count_if(
      order.begin(), order.end(), [&](NodeId id) { return graph.node(id).op.kind() == kind; }));
}

TEST(EGraph, MergingOperandsMergesWhatIsComputedFromThem) {
  Graph graph;
  const TensorRef a = graph.AddInput("a", F32({4, 4})), b = graph.AddInput("b", F32({4, 4}));
  const TensorRef f = Call(&graph, Operator(OpKind::kRelu), {a});
  const TensorRef g = Call(&graph, Operator(OpKind::kRelu), {b});
  const TensorRef ff = Call(&graph, Operator(OpKind::kTanh), {f});
  const TensorRef gg = Call(&graph, Operator(OpKind::kTanh), {g});
  graph.AddOutput("y", ff);
  graph.AddOutput("z", gg);
  EGraph egraph(graph, /*training=*/false);
  EXPECT_NE(egraph.ClassOf(ff), egraph.ClassOf(gg));
  egraph.Merge(egraph.ClassOf(a), egraph.ClassOf(b));
  egraph.Rebuild();
  EXPECT_EQ(egraph.ClassOf(f), egraph.ClassOf(g));
  EXPECT_EQ(egraph.ClassOf(ff), egraph.ClassOf(gg));
  EXPECT_EQ(egraph.members(egraph.ClassOf(ff)).size(), 1u);
}

TEST(EGraph, EqualCallsOfSeveralOutputsMergeEachOfThem) {
  Graph graph;
  const TensorRef a = graph.AddInput("a", F32({4, 4})), b = graph.AddInput("b", F32({4, 4}));
  const Operator split(OpKind::kSplit,
                       {{"axis", int64_t{1}}, {"sizes", std::vector<Extent>{1, 3}}});
  const NodeId of_a = graph.Add(split, {a}).value(), of_b = graph.Add(split, {b}).value();
  for (int32_t o = 0; o < 2; ++o) {
    graph.AddOutput("a" + std::to_string(o), {of_a, o});
    graph.AddOutput("b" + std::to_string(o), {of_b, o});
  }
  EGraph egraph(graph, /*training=*/false);
  egraph.Merge(egraph.ClassOf(a), egraph.ClassOf(b));
  egraph.Rebuild();
  for (int32_t o = 0; o < 2; ++o) {
    EXPECT_EQ(egraph.ClassOf({of_a, o}), egraph.ClassOf({of_b, o}));
  }
  EXPECT_NE(egraph.ClassOf({of_a, 0}), egraph.ClassOf({of_a, 1}));
}

// Products that share an operand.
Graph Products(int count) {
  Graph graph;
  const TensorRef x = graph.AddInput("x", F32({8, 16}));
  for (int i = 0; i < count; ++i) {
    const std::string number = std::to_string(i);
    const TensorRef w = graph.AddWeight("w" + number, F32({16, 16}));
    graph.AddOutput("y" + number, Call(&graph, Operator(OpKind::kMatMul), {x, w}));
  }
  return graph;
}

TEST(Saturation, StaysWithinItsNodes) {
  const RuleIndex rules(DefaultRules());
  const Graph graph = Products(6);
  EGraph egraph(graph, /*training=*/false);
  SaturationOptions options;
  options.nodes = 100;
  const auto us_of = [](const Operator&, const std::vector<TensorType>&) { return 1.0; };
  const auto never = [] { return false; };
  EXPECT_EQ(Saturation(rules.algebra(), options, us_of, never, &egraph).Run(),
            SaturationStop::kNodes);
  EXPECT_LE(egraph.num_nodes(), 110);  // An application that began within is made as a whole.
}

// Three products of one operand, where that is of the type of the second: nowhere, which takes
// 120^3 tries to see.
Rule HardlyMatches() {
  const auto product = [](int w) {
    return PatternNode{OpKind::kMatMul, {}, {PatternRef::Input(0), PatternRef::Input(w)}};
  };
  Rule rule;
  rule.id = "r0";
  rule.num_inputs = 4;
  rule.source.nodes = {product(1), product(2), product(3)};
  rule.source.outputs = {PatternRef::Node(0), PatternRef::Node(1), PatternRef::Node(2)};
  rule.target = rule.source;
  rule.conditions = {{.kind = Condition::Kind::kSameType, .input = 0, .input_b = 1}};
  return rule;
}

TEST(Saturation, TriesAreBoundedAndMayBeStopped) {
  const Rule rule = HardlyMatches();
  const std::vector<const Rule*> rules = {&rule};
  const Graph graph = Products(40);
  const auto us_of = [](const Operator&, const std::vector<TensorType>&) { return 1.0; };
  int polls = 0;
  const auto run = [&](int64_t tries, int stop_at) {
    EGraph egraph(graph, /*training=*/false);
    SaturationOptions options;
    options.tries = tries;
    polls = 0;
    return Saturation(
               rules, options, us_of, [&] { return ++polls == stop_at; }, &egraph)
        .Run();
  };
  EXPECT_EQ(run(1000, 0), SaturationStop::kSaturated);
  EXPECT_LE(polls, 2);
  EXPECT_EQ(run(100'000'000, 0), SaturationStop::kSaturated);
  EXPECT_GT(polls, 5);
  EXPECT_EQ(run(100'000'000, 3), SaturationStop::kInterrupted);
  EXPECT_EQ(polls, 3);
}

TEST(Saturation, EndsByItselfWhereNothingMoreCanBeSaid) {
  Graph graph;
  const TensorRef x = graph.AddInput("x", F32({8, 16}));
  const TensorRef once = Call(&graph, Operator(OpKind::kRelu), {x});
  graph.AddOutput("y", Call(&graph, Operator(OpKind::kRelu), {once}));
  std::vector<const Rule*> rules;
  for (const Rule& rule : DefaultRules().rules) {
    if (rule.ToString().rfind("relu(relu(x0))", 0) == 0) rules.push_back(&rule);
  }
  ASSERT_EQ(rules.size(), 1u);
  EGraph egraph(graph, /*training=*/false);
  const auto us_of = [](const Operator&, const std::vector<TensorType>&) { return 1.0; };
  const auto never = [] { return false; };
  EXPECT_EQ(Saturation(rules, {}, us_of, never, &egraph).Run(), SaturationStop::kSaturated);
  EXPECT_EQ(egraph.ClassOf(once), egraph.ClassOf(graph.outputs()[0].tensor));
}

// A call that needs itself among the calls of a class (relu(relu(x)) is relu(x)), calls of several
// outputs, and tensors that several calls share.
TEST(CountedSelection, WhatChangedIsWhatCountingAnewGives) {
  Graph graph = Products(4);
  std::vector<TensorRef> products;
  for (const auto& output : graph.outputs()) products.push_back(output.tensor);
  const TensorRef sum = Call(&graph, Operator(OpKind::kAdd), {products[0], products[1]});
  const TensorRef once = Call(&graph, Operator(OpKind::kRelu), {sum});
  graph.AddOutput("once", once);
  graph.AddOutput("twice", Call(&graph, Operator(OpKind::kRelu), {once}));
  EGraph egraph(graph, /*training=*/false);
  const auto unit_us = [](const Operator&, const std::vector<TensorType>&) { return 1.0; };
  const auto never = [] { return false; };
  const RuleIndex rules(DefaultRules());
  Saturation(rules.algebra(), {.nodes = 300}, unit_us, never, &egraph).Run();

  std::vector<ENodeId> calls(egraph.num_classes(), -1);
  for (NodeId id : graph.TopologicalOrder()) {
    const Node& node = graph.node(id);
    std::vector<ClassId> operands;
    for (TensorRef input : node.inputs) operands.push_back(egraph.ClassOf(input));
    const ClassId made = egraph.ClassOf({id, 0});
    if (calls[made] >= 0) continue;
    calls[made] =
        operands.empty() ? egraph.members(made)[0].node : egraph.Lookup(node.op, operands);
  }
  std::vector<ClassId> outputs;
  for (const auto& output : graph.outputs()) outputs.push_back(egraph.ClassOf(output.tensor));
  const std::vector<bool> stored(egraph.num_classes(), false);
  const auto us_of = [](ENodeId call) { return 1.0 + call % 7; };
  CountedSelection walk(egraph, outputs, stored, us_of), anew(egraph, outputs, stored, us_of);
  ASSERT_TRUE(walk.Set(calls));

  std::mt19937 random(1);
  int kept = 0, cycles = 0;
  for (int i = 0; i < 20'000; ++i) {
    SelectionMove move;
    for (int changes = 1 + random() % 2; changes > 0;) {
      const ClassId id = egraph.Find(random() % egraph.num_classes());
      const auto& members = egraph.members(id);
      const ENodeId call = members[random() % members.size()].node;
      if (!egraph.IsCanonical(call)) continue;
      --changes;
      if (move.empty() || move[0].first != id) move.emplace_back(id, call);
    }
    if (!walk.IsWorthTrying(move)) continue;
    const Selection before = walk.now();
    walk.Make(move);
    std::vector<ENodeId> moved = walk.now().calls;
    const bool has_calls = anew.Set(moved);
    if (walk.Keep()) {
      ++kept;
      ASSERT_TRUE(has_calls);
      ASSERT_EQ(walk.now().us, anew.now().us);
    } else {
      cycles += anew.now().us < kImpossibleUs;
      ASSERT_FALSE(has_calls);
      ASSERT_EQ(walk.now().calls, before.calls);
      ASSERT_EQ(walk.now().us, before.us);
      ASSERT_TRUE(anew.Set(before.calls));
      ASSERT_EQ(walk.now().us, anew.now().us);
    }
  }
  EXPECT_GT(kept, 1000);
  EXPECT_GT(cycles, 10);
}

// For inference.
OptimizeResult OptimizeByEGraph(const Graph& graph, int64_t devices, uint64_t seed = 1) {
  const RuleIndex rules(DefaultRules());
  const CostModel cost(LoadMachine("dgx_h100", 1, devices).value());
  Model model;
  model.graph = graph;
  OptimizeOptions options;
  options.training = false;
  options.search.engine = Engine::kEGraph;
  options.search.seed = seed;
  options.search.budget = 30;
  auto result = Optimize(model, rules, cost, options);
  EXPECT_TRUE(result.ok()) << result.status();
  return *std::move(result);
}

TEST(EGraphSearch, ManyProductsOfOneTensorBecomeFew) {
  const OptimizeResult result = OptimizeByEGraph(Products(6), 1);
  EXPECT_LE(CountKind(result.plan.graph, OpKind::kMatMul), 2);
  EXPECT_LT(result.simulation.step_us, result.single_device.step_us);
  ExpectPlanHolds(result.plan, DefaultRules());
}

// Both paths of SqueezeNet's fire module: kernels of different sizes, biases, one result.
Graph Fire() {
  Graph graph;
  const TensorRef x = graph.AddInput("x", F32({1, 64, 55, 55}));
  std::vector<TensorRef> paths;
  for (int64_t side : {1, 3}) {
    const std::string name = std::to_string(side);
    const TensorRef w = graph.AddWeight("w" + name, F32({64, 64, side, side}));
    const TensorRef b = graph.AddWeight("b" + name, F32({64, 1, 1}));
    const Operator conv(OpKind::kConv2d, {{"stride", std::vector<int64_t>{1, 1}},
                                          {"dilation", std::vector<int64_t>{1, 1}},
                                          {"padding", std::vector<int64_t>(4, side / 2)},
                                          {"groups", int64_t{1}}});
    const TensorRef sum = Call(&graph, Operator(OpKind::kAdd), {Call(&graph, conv, {x, w}), b});
    paths.push_back(Call(&graph, Operator(OpKind::kRelu), {sum}));
  }
  graph.AddOutput("y", Call(&graph, Operator(OpKind::kConcat, {{"axis", int64_t{1}}}), paths));
  return graph;
}

TEST(EGraphSearch, PlansForSeveralDevicesHold) {
  for (int64_t devices : {1, 2}) {
    const OptimizeResult result = OptimizeByEGraph(Fire(), devices);
    EXPECT_LT(result.simulation.step_us, result.single_device.step_us);
    ExpectPlanHolds(result.plan, DefaultRules());
  }
}

TEST(EGraphSearch, TwoRunsOfOneSeedAreOnePlan) {
  const OptimizeResult first = OptimizeByEGraph(Fire(), 1, 7);
  const OptimizeResult second = OptimizeByEGraph(Fire(), 1, 7);
  EXPECT_EQ(first.plan.graph.ToString(), second.plan.graph.ToString());
  EXPECT_EQ(first.plan.steps, second.plan.steps);
}

TEST(EGraphSearch, PlansOfTrainingHold) {
  Model model;
  model.graph = Fire();
  // The mean of the squares of the result as a loss.
  const TensorRef y = model.graph.outputs()[0].tensor;
  const Operator mean(OpKind::kReduceMean,
                      {{"axes", std::vector<int64_t>{0, 1, 2, 3}}, {"keepdims", int64_t{0}}});
  const TensorRef square = Call(&model.graph, Operator(OpKind::kMul), {y, y});
  model.graph.AddOutput("loss", Call(&model.graph, mean, {square}));
  model.loss = "loss";
  const RuleIndex rules(DefaultRules());
  const CostModel cost(TestMachine(1, 1));
  OptimizeOptions options;
  options.search.engine = Engine::kEGraph;
  const auto result = Optimize(model, rules, cost, options);
  ASSERT_TRUE(result.ok()) << result.status();
  ExpectPlanHolds(result->plan, DefaultRules());
}

TEST(ComputeGraph, InferencePreparesWhatIsMadeOfWeightsAlone) {
  Graph graph;
  const TensorRef x = graph.AddInput("x", F32({8, 16}));
  const TensorRef w = graph.AddWeight("w", F32({8, 16}));
  const TensorRef half = Call(&graph, Operator(OpKind::kRelu), {w});
  graph.AddOutput("y", Call(&graph, Operator(OpKind::kAdd), {x, half}));
  graph.AddOutput("z", Call(&graph, Operator(OpKind::kMul), {x, half}));
  EXPECT_EQ(AnalyzeCompute(graph, /*training=*/true).nodes.size(), 3u);
  EXPECT_EQ(AnalyzeCompute(graph, /*training=*/false).nodes.size(), 2u);
}

}  // namespace
}  // namespace isomer
