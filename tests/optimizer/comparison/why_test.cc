#include "optimizer/comparison/why.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "optimizer/comparison/step_decision.h"
#include "optimizer/proposal/baselines.h"
#include "tests/optimizer/report/report_scenario.h"

namespace isomer {
namespace {

using testing::HasSubstr;
using testing::Not;

class WhyAPlan : public ReportScenario {
 protected:
  Why Explained() const {
    BaselineSummaries baselines(result_, *cost_);
    auto why = WhyOf(result_, report_, *cost_, &baselines);
    EXPECT_TRUE(why.ok()) << why.status();
    return *std::move(why);
  }
  std::vector<StepDecision> Decisions(const Plan& plan) const {
    auto decisions = StepDecisionsOf(plan, *cost_);
    EXPECT_TRUE(decisions.ok()) << decisions.status();
    return *std::move(decisions);
  }
};

TEST_F(WhyAPlan, IsHeldAgainstDataParallelismAndTheNextBest) {
  Make(ResidualModel(2, 64, 128, 256), 2, 2);
  const Why why = Explained();
  EXPECT_THAT(why.text, HasSubstr("Computation is split in"));
  if (result_.origin != kDataParallel) {
    EXPECT_THAT(why.text, HasSubstr("\nAgainst data_parallel: "));
  }
  EXPECT_THAT(why.text, HasSubstr("What would have to change for "));
  EXPECT_THAT(why.json.PrintCompact(), HasSubstr("\"turning_points\":["));
}

TEST_F(WhyAPlan, AUsersConfigurationIsAmongThem) {
  OptimizeOptions options;
  options.grid = GridRequest{.degrees = {.tensor = 2}};
  options.grid_name = "mine.txt";
  Make(ResidualModel(2, 64, 128, 256), 1, 2, options);
  if (result_.origin == "mine.txt") GTEST_SKIP() << "the search keeps it";
  EXPECT_THAT(Explained().text, HasSubstr("\nAgainst mine.txt: "));
}

TEST_F(WhyAPlan, WithoutOthersItSaysWhatItKnows) {
  Make(ResidualModel(2, 64, 128, 256), 1, 2);
  result_.baselines.clear();
  result_.baseline_plans.clear();
  const Why why = Explained();
  EXPECT_THAT(why.text, HasSubstr("Computation is split in"));
  EXPECT_THAT(why.text, Not(HasSubstr("Against")));
  EXPECT_THAT(why.text, Not(HasSubstr("to win")));
}

TEST_F(WhyAPlan, ADecisionIsWhatThePlanWouldBeWithoutIt) {
  OptimizeOptions options;
  options.plan = kDataParallel;
  options.update.optimizer = OptimizerKind::kAdam;
  Make(ResidualModel(2, 64, 128, 256), 1, 2, options);
  Plan plan = result_.plan;
  plan.update.method = UpdateMethod::kSharded;
  plan.update.bucket_bytes = 0;
  plan.update.bucket_ends.clear();
  plan.update.immediate = false;
  ASSERT_TRUE(PredictPlan(*cost_, &plan).ok());
  const std::vector<StepDecision> decisions = Decisions(plan);
  ASSERT_EQ(decisions.size(), 1u);
  EXPECT_EQ(decisions[0].text, "weights are updated by sharded (ZeRO 1)");
  Plan whole = plan;
  whole.update.method = UpdateMethod::kAllReduce;
  ASSERT_TRUE(PredictPlan(*cost_, &whole).ok());
  EXPECT_EQ(decisions[0].step_us, whole.predicted_step_us);
  EXPECT_EQ(decisions[0].peak_bytes, whole.predicted_peak_bytes);
  EXPECT_GT(decisions[0].peak_bytes, plan.predicted_peak_bytes);
  plan.update.method = UpdateMethod::kAllReduce;
  EXPECT_TRUE(Decisions(plan).empty());
}

TEST_F(WhyAPlan, InferenceHasNoUpdates) {
  OptimizeOptions options;
  options.training = false;
  Make(ResidualModel(2, 64, 128, 256), 1, 2, options);
  for (const StepDecision& decision : Decisions(result_.plan)) {
    EXPECT_THAT(decision.text, Not(HasSubstr("weights")));
    EXPECT_THAT(decision.text, Not(HasSubstr("gradients")));
  }
}

}  // namespace
}  // namespace isomer
