#include "optimizer/mapping/derivation.h"

#include <algorithm>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "optimizer/mapping/cost_tables.h"
#include "optimizer/proposal/baselines.h"
#include "pcg/support/data_path.h"
#include "tests/optimizer/example_models.h"
#include "tests/optimizer/example_rules.h"
#include "tests/optimizer/plan_holds.h"
#include "tests/optimizer/test_machine.h"

namespace isomer {
namespace {

class OrderOfCalls : public testing::Test {
 protected:
  OrderOfCalls()
      : model_(TwoBranches(3, 64, 128)),
        rules_(ExampleRules(model_.graph)),
        index_(rules_),
        cost_(TestMachine(1, 4)),
        tables_(index_, cost_, CostOptions{}) {}

  Plan PlanOf(const char* baseline, CallOrder order) {
    auto mapped = MapBaseline(baseline, model_.graph, &tables_);
    EXPECT_TRUE(mapped.ok()) << mapped.status();
    auto plan = DerivePlan(model_, *mapped, true, &tables_, order);
    EXPECT_TRUE(plan.ok()) << plan.status();
    return *std::move(plan);
  }

  Model model_;
  RuleSet rules_;
  RuleIndex index_;
  CostModel cost_;
  CostTables tables_;
};

// Names of the calls of the model that are still there, in the order of devices.
std::vector<std::string> CallsOf(const Graph& graph, const Graph& among) {
  std::vector<std::string> names, known;
  for (NodeId id : among.TopologicalOrder()) known.push_back(among.node(id).name);
  for (NodeId id : graph.TopologicalOrder()) {
    const Node& node = graph.node(id);
    const bool is_call = !IsLeaf(node.op.kind()) && !IsParallel(node.op.kind());
    if (is_call && std::count(known.begin(), known.end(), node.name) > 0) {
      names.push_back(node.name);
    }
  }
  return names;
}

TEST_F(OrderOfCalls, OfTheModelIsThatOfItsCalls) {
  const Plan plan = PlanOf(kDataParallel, CallOrder::kModel);
  EXPECT_EQ(CallsOf(plan.graph, model_.graph), CallsOf(model_.graph, model_.graph));
  EXPECT_NE(CallsOf(PlanOf(kDataParallel, CallOrder::kCanonical).graph, model_.graph),
            CallsOf(model_.graph, model_.graph));
}

TEST_F(OrderOfCalls, PlansHoldInEither) {
  for (const char* baseline : {kDataParallel, kMegatron}) {
    const Plan plan = PlanOf(baseline, CallOrder::kModel);
    ExpectPlanHolds(plan, rules_);
    EXPECT_EQ(plan.graph.Canonical().ToString(),
              PlanOf(baseline, CallOrder::kCanonical).graph.ToString());
  }
}

// A temperature, as of CLIP: a function of a parameter without dims. No shipped rule copies it, so
// one device computes it and the others get its result; of one dim, each device computes it.
TEST(CopiedCalls, FunctionsOfScalarsAreComputedOnceAndTheirResultCopied) {
  const absl::StatusOr<RuleSet> rules = LoadRules(DataPath("rules/default.rules"));
  ASSERT_TRUE(rules.ok()) << rules.status();
  const RuleIndex index(*rules);
  const CostModel cost(TestMachine(1, 4));
  for (const std::vector<int64_t>& sizes : {std::vector<int64_t>{}, std::vector<int64_t>{1}}) {
    for (const bool training : {false, true}) {
      SCOPED_TRACE(testing::Message() << "rank " << sizes.size() << ", training " << training);
      Model model;
      Graph& g = model.graph;
      const auto call = [&g](OpKind kind, const std::vector<TensorRef>& operands) {
        absl::StatusOr<TensorRef> made = g.AddOp(kind, operands);
        EXPECT_TRUE(made.ok()) << made.status();
        return made.value_or(TensorRef());
      };
      const TensorRef x = g.AddInput("x", SequentialType({8, 16}));
      const TensorRef w = g.AddWeight("w", SequentialType({16, 4}));
      const TensorRef labels = g.AddInput("labels", SequentialType({8}, DataType::kInt64));
      const TensorRef scale = g.AddWeight("scale", SequentialType(sizes));
      const TensorRef factor = call(OpKind::kExp, {call(OpKind::kSigmoid, {scale})});
      const TensorRef scores = call(OpKind::kMul, {call(OpKind::kMatMul, {x, w}), factor});
      g.AddOutput("loss", call(OpKind::kCrossEntropy, {scores, labels}));
      model.loss = "loss";
      CostTables tables(index, cost, CostOptions{.training = training});
      auto mapped = MapBaseline(kDataParallel, g, &tables);
      ASSERT_TRUE(mapped.ok()) << mapped.status();
      mapped->copies_arranged = true;
      const auto plan = DerivePlan(model, *mapped, training, &tables);
      ASSERT_TRUE(plan.ok()) << plan.status();
      ExpectPlanHolds(*plan, *rules);
      int64_t copies = 0;
      for (NodeId id : plan->graph.TopologicalOrder()) {
        const Node& node = plan->graph.node(id);
        if (node.op.kind() == OpKind::kExp) copies = node.outputs[0].copies;
      }
      // In inference what weights alone make is computed once, and copied, whatever its rank.
      EXPECT_EQ(copies, training && !sizes.empty() ? 4 : 1);
    }
  }
}

}  // namespace
}  // namespace isomer
