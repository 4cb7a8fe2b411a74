#include "optimizer/simulator/stored_bytes.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "optimizer/proposal/grid_plan.h"
#include "optimizer/simulator/simulator.h"
#include "tests/optimizer/example_models.h"
#include "tests/optimizer/example_rules.h"
#include "tests/optimizer/test_machine.h"

namespace isomer {
namespace {

// Of ResidualModel(3, .., 128, 512), in float32.
constexpr double kWeightBytes = 4.0 * 3 * 2 * 128 * 512;

// Of one micro-batch, of several, and of a pipeline: what every method takes, simulated, beside
// what is said of it before.
class StoredBytes : public testing::TestWithParam<GridRequest> {
 protected:
  Plan PlanWith(UpdateMethod method) {
    CostTables tables(index_, cost_, {.training = true});
    auto config = ConfigOf(GetParam(), model_, 4);
    EXPECT_TRUE(config.ok()) << config.status();
    GridGraph graphs(model_);
    auto made = PlanOfConfig(&graphs, /*training=*/true, *config, &tables);
    EXPECT_TRUE(made.ok()) << made.status();
    Plan plan = std::move(made->plan);
    plan.update.optimizer = OptimizerKind::kAdam;
    plan.update.method = method;
    plan.update.bucket_bytes = 1 << 12;  // small beside the model
    const auto simulation = PredictPlan(cost_, &plan);
    EXPECT_TRUE(simulation.ok()) << simulation.status();
    return plan;
  }

  const Model model_ = ResidualModel(3, 64, 128, 512);
  const RuleSet rules_ = ExampleRules(model_.graph);
  const RuleIndex index_{rules_};
  const CostModel cost_{TestMachine(1, 4)};
};

TEST_P(StoredBytes, AreNoMoreThanWhatAStepTakes) {
  std::map<UpdateMethod, Plan> plans;
  for (UpdateMethod method :
       {UpdateMethod::kAllReduce, UpdateMethod::kSharded, UpdateMethod::kShardedGradients,
        UpdateMethod::kShardedWeights, UpdateMethod::kOwner}) {
    plans[method] = PlanWith(method);
  }
  for (const auto& [now, plan] : plans) {
    EXPECT_LE(LeastStoredBytes(plan, plan.update), plan.predicted_peak_bytes);
    EXPECT_GT(LeastStoredBytes(plan, plan.update), 0);
    // Of any plan of its graph, and so of this one.
    const int64_t moments = NumMicroBatches(plan.graph, plan.views).value_or(1);
    const int64_t on_all =
        LeastStoredOnAll(plan.graph, plan.precision, plan.update,
                         moments > 1 ? Keeps::kSums : Keeps::kStates, cost_.machine());
    EXPECT_LE(on_all, plan.num_devices * LeastStoredBytes(plan, plan.update));
    EXPECT_GE(static_cast<double>(on_all), 3 * kWeightBytes);
    for (const auto& [method, other] : plans) {
      EXPECT_LE(LeastStoredBytes(plan, other.update), other.predicted_peak_bytes);
      // Here as much as two buckets of all gradients, and weights that are all gathered at once.
      EXPECT_NEAR(static_cast<double>(EstimatedPeakWith(other.update, plan)),
                  static_cast<double>(other.predicted_peak_bytes), 2.0 * kWeightBytes)
          << UpdateMethodName(now) << " to " << UpdateMethodName(method);
    }
  }
  // States are a third of what Adam stores, and more: parts of them show.
  EXPECT_LT(
      EstimatedPeakWith(plans[UpdateMethod::kSharded].update, plans[UpdateMethod::kAllReduce]),
      plans[UpdateMethod::kAllReduce].predicted_peak_bytes);
}

INSTANTIATE_TEST_SUITE_P(Configurations, StoredBytes,
                         testing::Values(GridRequest{}, GridRequest{.micro_batch_size = 4},
                                         GridRequest{.stages = 2, .micro_batch_size = 4}));

}  // namespace
}  // namespace isomer
