#include "pcg/support/stopping.h"

#include <csignal>

#include <gtest/gtest.h>

#include "optimizer/search/optimizer.h"
#include "tests/optimizer/example_models.h"
#include "tests/optimizer/example_rules.h"
#include "tests/optimizer/plan_holds.h"
#include "tests/optimizer/test_machine.h"

namespace isomer {
namespace {

class Stopping : public testing::Test {
 protected:
  Stopping()
      : model_(ResidualModel(4, 8, 16, 32)),
        rules_(ExampleRules(model_.graph)),
        index_(rules_),
        cost_(TestMachine(1, 4)) {}

  void ExpectAPlanThatHolds(const OptimizeOptions& options, StopReason reason) {
    const auto result = Optimize(model_, index_, cost_, options);
    ASSERT_TRUE(result.ok()) << result.status();
    EXPECT_STREQ(StopReasonName(result->searches.stop), StopReasonName(reason));
    ExpectPlanHolds(result->plan, rules_);
    for (const auto& [name, prediction] : result->baselines) {
      EXPECT_LE(result->plan.predicted_step_us, prediction.step_us) << name;
    }
  }

  Model model_;
  RuleSet rules_;
  RuleIndex index_;
  CostModel cost_;
};

TEST_F(Stopping, ATimeThatIsOverAtOnceLeavesABaseline) {
  OptimizeOptions options;
  options.search.time_limit_s = 1e-9;
  ExpectAPlanThatHolds(options, StopReason::kTimeLimit);
}

TEST_F(Stopping, ATimeThatIsNeverOverSaysNothing) {
  OptimizeOptions options;
  options.search.time_limit_s = 1e9;
  options.search.budget = 100000;
  ExpectAPlanThatHolds(options, StopReason::kExhausted);
}

TEST_F(Stopping, TheFirstInterruptEndsTheSearchAndNotTheProgram) {
  EndSearchesOnInterrupt();
  std::raise(SIGINT);
  ExpectAPlanThatHolds({}, StopReason::kInterrupted);
  ResumeSearches();
  ExpectAPlanThatHolds({}, StopReason::kExhausted);
}

TEST_F(Stopping, WithoutPiecesOrReuseThePlanIsNotBetter) {
  const auto all = Optimize(model_, index_, cost_, {});
  ASSERT_TRUE(all.ok());
  for (const bool split : {true, false}) {
    OptimizeOptions options;
    options.search.split = split;
    options.search.cache = false;
    const auto result = Optimize(model_, index_, cost_, options);
    ASSERT_TRUE(result.ok()) << result.status();
    EXPECT_EQ(result->searches.pieces, split ? all->searches.pieces : 1);
    EXPECT_EQ(result->searches.distinct_pieces, result->searches.pieces);
    ExpectPlanHolds(result->plan, rules_);
    EXPECT_GE(result->plan.predicted_step_us, 0.95 * all->plan.predicted_step_us);
  }
}

}  // namespace
}  // namespace isomer
