#include "optimizer/mapping/derivation.h"

#include <algorithm>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "optimizer/mapping/cost_tables.h"
#include "optimizer/proposal/baselines.h"
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

}  // namespace
}  // namespace isomer
