#include "optimizer/comparison/turning_point.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "optimizer/proposal/baselines.h"
#include "optimizer/simulator/simulator.h"
#include "tests/optimizer/report/report_scenario.h"

namespace isomer {
namespace {

using testing::HasSubstr;

TEST(NearestSignChange, IsTheNearestOnEitherSide) {
  const auto at = [](double where) {
    return [where](double factor) { return std::log(factor / where); };
  };
  EXPECT_NEAR(*NearestSignChange(at(5), 16), 5, 0.1);
  EXPECT_NEAR(*NearestSignChange(at(0.3), 16), 0.3, 0.006);
  EXPECT_NEAR(*NearestSignChange(at(1.01), 16), 1.01, 0.02);
  EXPECT_EQ(NearestSignChange(at(17), 16), std::nullopt);
  EXPECT_EQ(NearestSignChange(at(1 / 17.0), 16), std::nullopt);
  const auto two = [](double factor) { return (factor - 0.4) * (factor - 7); };
  EXPECT_NEAR(*NearestSignChange(two, 16), 0.4, 0.008);
}

TEST(RatesOf, AreThoseThatTheMachineHas) {
  const auto names = [](const Machine& machine) {
    std::vector<std::string> names;
    for (const MachineRates& rates : RatesOf(machine)) names.push_back(rates.name);
    return names;
  };
  using testing::ElementsAre;
  EXPECT_THAT(names(TestMachine(2, 4)),
              ElementsAre("links between nodes", "links within a node", "devices"));
  EXPECT_THAT(names(TestMachine(4, 1)), ElementsAre("links between nodes", "devices"));
  EXPECT_THAT(names(TestMachine(1, 4)), ElementsAre("links within a node", "devices"));
  EXPECT_THAT(names(TestMachine(1, 1)), ElementsAre("devices"));
}

class TurningPoints : public ReportScenario {
 protected:
  double StepUs(const Plan& plan, const MachineRates& rates, double factor) const {
    Machine machine = cost_->machine();
    rates.scale(factor, &machine);
    Plan priced = plan;
    const auto simulation = PredictPlan(CostModel(std::move(machine)), &priced);
    EXPECT_TRUE(simulation.ok()) << simulation.status();
    return simulation->step_us;
  }
};

TEST_F(TurningPoints, APreparedPlanTakesAsLongAsItIsPredicted) {
  MakePipeline();
  const auto prepared = PreparedPlan::Prepare(*cost_, result_.plan);
  ASSERT_TRUE(prepared.ok()) << prepared.status();
  for (const MachineRates& rates : RatesOf(cost_->machine())) {
    for (const double factor : {0.25, 1.0, 8.0}) {
      Machine machine = cost_->machine();
      rates.scale(factor, &machine);
      EXPECT_NEAR(prepared->StepUs(CostModel(std::move(machine))),
                  StepUs(result_.plan, rates, factor), 1e-6)
          << rates.name << " " << factor;
    }
  }
}

// Of each point found, the plans change places there.
TEST_F(TurningPoints, PlansChangePlacesThere) {
  Make(ResidualModel(2, 64, 128, 256), 2, 2);
  int found = 0;
  for (const auto& [name, other] : result_.baseline_plans) {
    if (other.predicted_step_us <= result_.plan.predicted_step_us) continue;
    const auto points = TurningPointsOf(result_.plan, other, *cost_);
    ASSERT_TRUE(points.ok()) << points.status();
    const std::vector<MachineRates> all = RatesOf(cost_->machine());
    ASSERT_EQ(points->size(), all.size());
    for (size_t r = 0; r < all.size(); ++r) {
      if (!(*points)[r].factor.has_value()) continue;
      const double factor = *(*points)[r].factor;
      const double beyond = factor > 1 ? factor * 1.03 : factor / 1.03;
      const double before = factor > 1 ? factor / 1.03 : factor * 1.03;
      EXPECT_LT(StepUs(other, all[r], beyond), StepUs(result_.plan, all[r], beyond)) << name;
      EXPECT_GE(StepUs(other, all[r], before), StepUs(result_.plan, all[r], before)) << name;
      ++found;
    }
  }
  EXPECT_GE(found, 1);
}

TEST(TurningPointsText, SaysWhichWay) {
  const std::string text =
      TurningPointsText({{"links", 4.2}, {"devices", 0.25}, {"others", std::nullopt}}, "A", "B");
  EXPECT_THAT(text, HasSubstr("links: from 4.2 times their speed on, B is faster"));
  EXPECT_THAT(text, HasSubstr("devices: below 1/4 of their speed, B is faster"));
  EXPECT_THAT(text, HasSubstr("others: from 1/16 to 16 times their speed, A stays faster"));
}

}  // namespace
}  // namespace isomer
