// Plans for machines whose devices are not all alike.
#include <gtest/gtest.h>

#include "optimizer/search/optimizer.h"
#include "tests/optimizer/example_models.h"
#include "tests/optimizer/example_rules.h"
#include "tests/optimizer/test_machine.h"

namespace isomer {
namespace {

// Two nodes of two devices; those of the second node are `second`, of the first `first`.
Machine Mixed(double first, double second) {
  Machine machine = TestMachine(2, 2);
  machine.kinds.push_back(machine.kinds[0]);
  machine.kinds[0].name = "first";
  machine.kinds[1].name = "second";
  machine.kinds[0].flops_per_us *= first;
  machine.kinds[1].flops_per_us *= second;
  machine.kind_level = 1;
  machine.unit_kinds = {0, 1};
  return machine;
}

double StepUs(const Machine& machine) {
  const Model model = ResidualModel(2, 512, 512, 1024);
  const RuleSet rules = ExampleRules(model.graph);
  const RuleIndex index(rules);
  const CostModel cost(machine);
  const auto result = Optimize(model, index, cost, {});
  EXPECT_TRUE(result.ok()) << result.status();
  return result.ok() ? result->plan.predicted_step_us : 0;
}

TEST(Heterogeneous, StepsLieBetweenThoseOfTheKindsAlone) {
  const double slow = StepUs(Mixed(1, 1)), mixed = StepUs(Mixed(1, 4)), fast = StepUs(Mixed(4, 4));
  EXPECT_LE(mixed, slow);
  EXPECT_LT(fast, mixed);
}

TEST(Heterogeneous, WhichNodeIsFasterDoesNotMatter) {
  EXPECT_NEAR(StepUs(Mixed(1, 4)) / StepUs(Mixed(4, 1)), 1, 0.05);
}

// A plan on the other devices fits where one kind holds nothing.
TEST(Heterogeneous, EachDeviceMustHoldItsPart) {
  Machine machine = Mixed(1, 1);
  const Model model = ResidualModel(2, 512, 512, 1024);
  const RuleSet rules = ExampleRules(model.graph);
  const RuleIndex index(rules);
  machine.kinds[1].memory_bytes = 1000;
  const auto result = Optimize(model, index, CostModel(machine), {});
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_TRUE(result->fits);
  for (const MachineView& view : result->plan.views) EXPECT_LT(view.start, 2);
  EXPECT_LE(result->simulation.peak_bytes_of_kind.at(1), 1000);
  machine.kinds[0].memory_bytes = 1000;
  const auto none = Optimize(model, index, CostModel(machine), {});
  ASSERT_TRUE(none.ok()) << none.status();
  EXPECT_FALSE(none->fits);
}

}  // namespace
}  // namespace isomer
