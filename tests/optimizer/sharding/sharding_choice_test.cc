#include "optimizer/sharding/sharding_choice.h"

#include <algorithm>
#include <set>

#include <gtest/gtest.h>

#include "optimizer/cost/reshard_cost.h"
#include "optimizer/mapping/cost_tables.h"
#include "optimizer/sharding/rule_index.h"
#include "tests/optimizer/example_rules.h"

namespace isomer {
namespace {

// x[8,16] w[16,4]: dims m 8, n 4, k 16.
struct Product {
  Graph graph;
  RuleSet rules;
  ChoiceSpace space;
};

Product MakeProduct(int64_t devices) {
  const std::vector<TensorType> operands = {SequentialType({8, 16}), SequentialType({16, 4})};
  Product p;
  p.graph = GraphOfCall(OpKind::kMatMul, operands).value();
  p.rules = ExampleRules(p.graph);
  p.space =
      EnumerateChoices(RuleIndex(p.rules), OpKind::kMatMul, operands, {.num_devices = devices})
          .value();
  return p;
}

std::set<std::string> Texts(const ChoiceSpace& space) {
  std::set<std::string> texts;
  for (const ShardingChoice& choice : space.choices) {
    texts.insert(choice.ToString(space.sharding.declaration));
  }
  return texts;
}

TEST(ShardingChoice, FourDevicesAllWaysToSplitAProduct) {
  const Product p = MakeProduct(4);
  EXPECT_EQ(Texts(p.space),
            (std::set<std::string>{"idle 4", "m 4", "n 4", "k 4", "m 2 x n 2", "n 2 x m 2",
                                   "m 2 x k 2", "k 2 x m 2", "n 2 x k 2", "k 2 x n 2"}));
}

TEST(ShardingChoice, DevicesIdleWhereNothingIsLeftToSplit) {
  // No size divides by 3.
  EXPECT_EQ(Texts(MakeProduct(3).space), (std::set<std::string>{"idle 3"}));
}

TEST(ShardingChoice, WithoutRulesTheCallStaysWhole) {
  RuleSet none;
  none.BuildIndex();
  const auto space =
      EnumerateChoices(RuleIndex(none), OpKind::kRelu,
                       std::vector<TensorType>{SequentialType({8, 8})}, {.num_devices = 4});
  ASSERT_TRUE(space.ok());
  EXPECT_EQ(Texts(*space), (std::set<std::string>{"idle 4"}));
}

TEST(ShardingChoice, TypesAndViewsOfRowsByColumns) {
  const Product p = MakeProduct(4);
  const auto choice = MakeChoice(p.space, {{0, 2}, {1, 2}});  // rows over halves, columns within
  ASSERT_TRUE(choice.ok()) << choice.status();
  EXPECT_EQ(choice->operands[0].type.ToString(), "f32[8:2,16] c2");
  EXPECT_EQ(choice->operands[0].view.strides, (std::vector<int64_t>{2, 0, 1, 0}));
  EXPECT_EQ(choice->operands[1].type.ToString(), "f32[16,4:2] c2");
  EXPECT_EQ(choice->operands[1].view.strides, (std::vector<int64_t>{0, 1, 2, 0}));
  EXPECT_EQ(choice->outputs[0].type.ToString(), "f32[8:2,4:2]");
}

// Its type has the degree of both.
TEST(ShardingChoice, ADimOfTwoAxes) {
  const Product p = MakeProduct(4);
  const absl::StatusOr<ShardingChoice> choice = MakeChoice(p.space, {{0, 2}, {0, 2}});
  ASSERT_TRUE(choice.ok()) << choice.status();
  EXPECT_EQ(choice->DegreeOf(0), 4);
  EXPECT_EQ(choice->outputs[0].type.ToString(), "f32[8:4,4]");
  EXPECT_TRUE(MakeChoice(p.space, {{0, 2}, {kIdleAxis, 2}}).ok());
}

// Micro-batches of the rows: neighbours on one device, and one buffer of the weight for them.
TEST(ShardingChoice, MomentsAreTheFastestPartOfTheirDim) {
  const std::vector<TensorType> operands = {SequentialType({8, 16}), SequentialType({16, 4})};
  const RuleSet rules = ExampleRules(GraphOfCall(OpKind::kMatMul, operands).value());
  const auto space =
      EnumerateChoices(RuleIndex(rules), OpKind::kMatMul, operands,
                       {.num_devices = 4, .start = 4, .moments = 2, .moment_dim = 0});
  ASSERT_TRUE(space.ok()) << space.status();
  int seen = 0;
  for (const ShardingChoice& choice : space->choices) {
    EXPECT_EQ(choice.moments, 2);
    for (const auto* placements : {&choice.operands, &choice.outputs}) {
      for (const Placement& p : *placements) {
        EXPECT_EQ(ValidateView(p.view, p.type, 8), absl::OkStatus()) << p.type.ToString();
      }
    }
    if (choice.axes != std::vector<Axis>{{0, 2}, {1, 2}}) continue;
    ++seen;
    EXPECT_EQ(choice.operands[0].type.ToString(), "f32[8:4,16] c2");
    EXPECT_EQ(choice.operands[0].view.ToString(), "start 4 strides [2,0,1,0] moments [2,1,1,1]");
    EXPECT_EQ(choice.operands[1].type.ToString(), "f32[16,4:2] c4");
    EXPECT_EQ(choice.operands[1].view.ToString(), "start 4 strides [0,1,2,0] moments [1,1,2,1]");
    EXPECT_EQ(choice.outputs[0].type.ToString(), "f32[8:4,4:2]");
  }
  EXPECT_EQ(seen, 1);
}

// One node of four devices: 100 bytes/us each way, no latency, no launch.
CostModel FourDevices() {
  Machine machine;
  machine.kinds[0].flops_per_us = machine.kinds[0].memory_bytes_per_us = 1;
  machine.levels = {{"node", 4, 100, 0}, {"cluster", 1, 100, 0}};
  return CostModel(machine);
}

Placement Place(const char* type, std::vector<int64_t> strides) {
  return {ParseTensorType(type).value(), {0, std::move(strides)}};
}

TEST(ReshardCost, WhatIsThereAlreadyIsFree) {
  const CostModel cost = FourDevices();
  EXPECT_EQ(ReshardUs(cost, Place("f32[100:4]", {1, 0, 0}), Place("f32[100:4]", {1, 0, 0})), 0);
}

TEST(ReshardCost, GatheringAndReducingAreRings) {
  const CostModel cost = FourDevices();
  const Placement split = Place("f32[100:4]", {1, 0, 0});
  const Placement copies = Place("f32[100] c4", {0, 1, 0});
  const Placement partials = Place("f32[100] p4", {0, 0, 1});
  EXPECT_DOUBLE_EQ(ReshardUs(cost, split, copies), 3);     // all-gather of 400 bytes
  EXPECT_DOUBLE_EQ(ReshardUs(cost, partials, split), 3);   // reduce-scatter
  EXPECT_DOUBLE_EQ(ReshardUs(cost, partials, copies), 6);  // all-reduce
}

TEST(ReshardCost, SplittingAnotherDimIsAnAllToAll) {
  const CostModel cost = FourDevices();
  // 20 x 20 floats: each device keeps a quarter of its quarter.
  EXPECT_DOUBLE_EQ(
      ReshardUs(cost, Place("f32[20:4,20]", {1, 0, 0, 0}), Place("f32[20,20:4]", {0, 1, 0, 0})), 3);
}

TEST(ReshardCost, TheGradientGoesBackTheDualWay) {
  const CostModel cost = FourDevices();
  const Placement split = Place("f32[100:4]", {1, 0, 0});
  const Placement copies = Place("f32[100] c4", {0, 1, 0});
  // All-gather forward, reduce-scatter backward.
  EXPECT_DOUBLE_EQ(EdgeUs(cost, split, copies, true), 6);
  EXPECT_DOUBLE_EQ(EdgeUs(cost, split, copies, false), 3);
}

// What arrives is kept beside what was sent, whoever has it; with no price on memory that is free.
TEST(PriceOfMemory, IsPaidForWhatArrives) {
  const CostModel cost = FourDevices();
  const RuleSet rules;
  const RuleIndex index(rules);
  CostTables tables(index, cost, CostOptions{});
  const PlacementSetId split = tables.Intern({Place("f32[100:4]", {1, 0, 0})});
  const PlacementSetId copies = tables.Intern({Place("f32[100] c4", {0, 1, 0})});
  EXPECT_FLOAT_EQ(tables.EdgeUs(split, copies, true).at(0, 0), 6);
  tables.set_options({.us_per_byte = 0.5});
  EXPECT_FLOAT_EQ(tables.EdgeUs(split, copies, true).at(0, 0), 6 + 0.5 * 400);
  EXPECT_EQ(tables.EdgeUs(split, split, true).at(0, 0), 0);
  tables.set_options({.training = false, .us_per_byte = 0.5});
  EXPECT_FLOAT_EQ(tables.EdgeUs(split, copies, false).at(0, 0), 3);
}

}  // namespace
}  // namespace isomer
