#include "optimizer/proposal/offload_choice.h"

#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "optimizer/search/optimizer.h"
#include "tests/optimizer/example_models.h"
#include "tests/optimizer/example_rules.h"
#include "tests/optimizer/plan_holds.h"
#include "tests/optimizer/test_machine.h"

namespace isomer {
namespace {

// Activations fill the device.
class OffloadChoiceTest : public testing::Test {
 protected:
  OffloadChoiceTest()
      : model_(ResidualModel(12, 8192, 64, 256)),
        rules_(ExampleRules(model_.graph)),
        index_(rules_) {}

  OptimizeResult OptimizeIn(int64_t memory_bytes, double host_bytes_per_us, bool may_offload,
                            bool may_recompute = true) {
    Machine machine = TestMachine(1, 2);
    if (memory_bytes > 0) machine.kinds[0].memory_bytes = memory_bytes;
    machine.kinds[0].host_bytes_per_us = host_bytes_per_us;
    OptimizeOptions options;
    options.search.budget = 10;
    options.may_offload = may_offload;
    // Micro-batches make room, too.
    options.without = {"grids"};
    if (!may_recompute) options.without.insert("memory");
    auto result = Optimize(model_, index_, CostModel(machine), options);
    EXPECT_TRUE(result.ok()) << result.status();
    return *std::move(result);
  }

  const Model model_;
  const RuleSet rules_;
  const RuleIndex index_;
};

TEST_F(OffloadChoiceTest, TakesThePlaceOfRecomputationWhereTheBusIsFast) {
  const Plan free = OptimizeIn(0, 0, false).plan;
  EXPECT_TRUE(free.recomputed.empty());
  const int64_t limit = free.predicted_peak_bytes / 2;
  const OptimizeResult again = OptimizeIn(limit, 1e6, false);
  const OptimizeResult away = OptimizeIn(limit, 1e6, true);
  ASSERT_TRUE(again.fits);
  ASSERT_TRUE(away.fits);
  EXPECT_TRUE(again.plan.offloaded.empty());
  EXPECT_FALSE(again.plan.recomputed.empty());
  EXPECT_FALSE(away.plan.offloaded.empty());
  EXPECT_LT(away.plan.predicted_step_us, again.plan.predicted_step_us);
  EXPECT_GE(away.plan.predicted_step_us, free.predicted_step_us);
  EXPECT_LE(away.plan.predicted_peak_bytes, limit);
  ExpectPlanHolds(away.plan, rules_);
}

// Over a slow bus what is small may go, where it is hidden; there is nothing to look at without
// one.
TEST_F(OffloadChoiceTest, NothingIsLostByASlowBusOrNone) {
  const int64_t limit = OptimizeIn(0, 0, false).plan.predicted_peak_bytes / 2;
  const OptimizeResult again = OptimizeIn(limit, 0, false);
  for (double host_bytes_per_us : {0.0, 1.0}) {
    const OptimizeResult other = OptimizeIn(limit, host_bytes_per_us, true);
    EXPECT_LE(other.plan.predicted_step_us, again.plan.predicted_step_us);
    if (host_bytes_per_us == 0) {
      EXPECT_TRUE(other.plan.offloaded.empty());
      EXPECT_EQ(other.proposers.rows().count("offload"), 0u);
    }
  }
}

TEST_F(OffloadChoiceTest, NothingIsLookedAtWhereAllFits) {
  const OptimizeResult result = OptimizeIn(0, 1e6, true);
  EXPECT_TRUE(result.plan.offloaded.empty());
  EXPECT_EQ(result.proposers.rows().count("offload"), 0u);
}

TEST_F(OffloadChoiceTest, MakesFitWhatFitsNoOtherWay) {
  const int64_t limit = OptimizeIn(0, 0, false).plan.predicted_peak_bytes / 2;
  // Nothing else is done about memory.
  EXPECT_FALSE(OptimizeIn(limit, 1e4, false, /*may_recompute=*/false).fits);
  const OptimizeResult away = OptimizeIn(limit, 1e4, true, /*may_recompute=*/false);
  EXPECT_TRUE(away.fits);
  EXPECT_FALSE(away.plan.offloaded.empty());
  EXPECT_LE(away.plan.predicted_peak_bytes, limit);
  ExpectPlanHolds(away.plan, rules_);
}

TEST(WithOffloaded, NamesOfTheSameBytesAreMadeAgain) {
  Plan plan;
  const TensorRef x = plan.graph.AddInput("x", SequentialType({4, 6}));
  const TensorRef y = *plan.graph.AddOp(OpKind::kTanh, {x});
  const TensorRef z =
      *plan.graph.AddOp(Operator(OpKind::kReshape, {{"shape", std::vector<int64_t>{24}}}), {y});
  const TensorRef w = *plan.graph.AddOp(OpKind::kExp, {z});
  plan.graph.AddOutput("w", w);
  plan.recomputed = {y.node, w.node};
  std::vector<NodeResults> results(plan.graph.num_nodes());
  results[y.node.value] = {.bytes = 96, .kept_bytes = 96, .us = 2};
  results[w.node.value] = {.bytes = 96, .kept_bytes = 96, .us = 3};
  const std::vector<NodeId> sorted = ByTimePerByte({x.node, y.node, z.node, w.node}, results);
  EXPECT_EQ(sorted, (std::vector<NodeId>{w.node, y.node}));
  const Plan away = WithOffloaded(plan, {y.node}, results);
  EXPECT_EQ(away.offloaded, std::vector<NodeId>{y.node});
  EXPECT_EQ(away.recomputed, (std::vector<NodeId>{z.node, w.node}));
}

}  // namespace
}  // namespace isomer
