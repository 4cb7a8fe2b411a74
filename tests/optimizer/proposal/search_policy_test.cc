#include "optimizer/proposal/search_policy.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <set>
#include <string>

#include "absl/strings/str_cat.h"
#include "optimizer/search/optimizer.h"
#include "tests/optimizer/example_models.h"
#include "tests/optimizer/example_rules.h"
#include "tests/optimizer/plan_holds.h"
#include "tests/optimizer/test_machine.h"

namespace isomer {
namespace {

using testing::HasSubstr;

std::string ErrorOfThresholds(const std::string& settings) {
  SearchPolicy policy;
  return std::string(SetThresholds(settings, &policy).message());
}

TEST(SearchPolicy, EveryThresholdHasANameAReasonAndARange) {
  const SearchPolicy policy;
  std::set<std::string> names;
  for (const Threshold& threshold : AllThresholds()) {
    SCOPED_TRACE(threshold.name);
    EXPECT_TRUE(names.insert(threshold.name).second);
    EXPECT_GT(std::string(threshold.reason).size(), 10u);
    EXPECT_GE(ValueOf(policy, threshold), threshold.least);
    EXPECT_LE(ValueOf(policy, threshold), threshold.most);
    EXPECT_THAT(PolicyText(policy), HasSubstr(threshold.reason));
  }
}

TEST(SearchPolicy, EachIsSetByItsNameAndNoOther) {
  for (const Threshold& threshold : AllThresholds()) {
    SCOPED_TRACE(threshold.name);
    SearchPolicy policy;
    const std::string setting = absl::StrCat(threshold.name, "=", threshold.least);
    ASSERT_EQ(SetThresholds(setting, &policy), absl::OkStatus());
    for (const Threshold& other : AllThresholds()) {
      const bool is_same = other.name == threshold.name;
      EXPECT_DOUBLE_EQ(ValueOf(policy, other),
                       is_same ? threshold.least : ValueOf(SearchPolicy(), other))
          << other.name;
    }
  }
  SearchPolicy policy;
  ASSERT_EQ(SetThresholds("walks=3,near_best=1.5", &policy), absl::OkStatus());
  EXPECT_EQ(policy.walks, 3);
  EXPECT_EQ(policy.near_best, 1.5);
}

TEST(SearchPolicy, ErrorsNameTheSettingAndWhatThereIs) {
  EXPECT_EQ(ErrorOfThresholds(""), "");
  EXPECT_THAT(ErrorOfThresholds("walk=3"), HasSubstr("no threshold 'walk'; there are near_best, "));
  EXPECT_THAT(ErrorOfThresholds("walks=1.5"),
              HasSubstr("'walks=1.5': walks is an integer from 0 to "));
  EXPECT_THAT(ErrorOfThresholds("walks"), HasSubstr("'walks': walks is an integer"));
  EXPECT_THAT(ErrorOfThresholds("walks=9=9"), HasSubstr("'walks=9=9': walks is an integer"));
  EXPECT_THAT(ErrorOfThresholds("walks=1,near_best=2,walks=1"), HasSubstr("'walks' is set twice"));
  EXPECT_THAT(ErrorOfThresholds("near_best=0.9"), HasSubstr("near_best is a number from 1 to "));
  EXPECT_THAT(ErrorOfThresholds("near_best=nan"), HasSubstr("near_best is a number from 1 to "));
  EXPECT_THAT(ErrorOfThresholds("busy_share=-1"), HasSubstr("busy_share is a number from 0 to 1"));
}

// They change how long a search takes and what it finds, never whether the plan is right: each
// threshold at either end of its range, in random company.
TEST(SearchPolicy, PlansHoldWithAnyThresholds) {
  const Model model = ResidualModel(1, 8, 16, 32);
  const RuleSet rules = ExampleRules(model.graph);
  const RuleIndex index(rules);
  const CostModel cost(TestMachine(1, 4));
  OptimizeOptions options;
  options.choose_buckets = options.choose_update_method = true;
  options.search.budget = 10;
  for (unsigned seed = 0; seed < 12; ++seed) {
    std::mt19937 random(seed);
    options.policy = {};
    for (const Threshold& threshold : AllThresholds()) {
      const double most = std::min(threshold.most, 2 * ValueOf(SearchPolicy(), threshold));
      const double value = random() % 2 == 0 ? threshold.least : most;
      const std::string setting = absl::StrCat(threshold.name, "=", value);
      ASSERT_EQ(SetThresholds(setting, &options.policy), absl::OkStatus()) << setting;
    }
    SCOPED_TRACE(PolicyText(options.policy));
    const auto result = Optimize(model, index, cost, options);
    ASSERT_TRUE(result.ok()) << result.status();
    EXPECT_TRUE(result->fits);
    ExpectPlanHolds(result->plan, rules);
  }
}

}  // namespace
}  // namespace isomer
