// Of whole networks with the rules that are shipped: the result is never slower than a baseline or
// than the same on fewer devices, and fits where it says so.
#include <string>

#include <gtest/gtest.h>

#include "models/loss.h"
#include "models/zoo/zoo.h"
#include "optimizer/expert_plans.h"
#include "optimizer/optimizer.h"
#include "pcg/support/data_path.h"
#include "tests/optimizer/plan_holds.h"

namespace isomer {
namespace {

class OfTheZoo : public testing::TestWithParam<const char*> {
 protected:
  static const RuleSet& Rules() {
    static const RuleSet* rules = new RuleSet(LoadRules(DataPath("rules/default.rules")).value());
    return *rules;
  }
  static const RuleIndex& Index() {
    static const RuleIndex* index = new RuleIndex(Rules());
    return *index;
  }
  static Model ModelOf(const std::string& spec) {
    Model model = BuildZooModel(spec).value();
    EXPECT_EQ(AttachLoss(&model, "auto"), absl::OkStatus());
    return model;
  }
  static Machine MachineOf(int64_t nodes, int64_t devices_per_node) {
    return LoadMachine("dgx_h100", nodes, devices_per_node).value();
  }
  OptimizeOptions Options() const {
    OptimizeOptions options;
    options.search.budget = 20;
    options.choose_update_method = true;
    return options;
  }
};

TEST_P(OfTheZoo, NeverSlowerThanABaselineOrFewerDevices) {
  const Model model = ModelOf(GetParam());
  double fewer = 0;
  for (int64_t devices : {1, 2, 8}) {
    const CostModel cost(MachineOf(1, devices));
    const auto result = Optimize(model, Index(), cost, Options());
    ASSERT_TRUE(result.ok()) << result.status();
    ExpectPlanHolds(result->plan, Rules());
    for (const auto& [name, prediction] : result->baselines) {
      EXPECT_LE(result->plan.predicted_step_us, prediction.step_us) << name;
    }
    if (devices > 1) {
      EXPECT_LE(result->plan.predicted_step_us, fewer * (1 + 1e-9)) << devices;
    }
    fewer = result->plan.predicted_step_us;
  }
}

TEST_P(OfTheZoo, FitsIntoPartOfTheMemoryOrSaysThatItDoesNot) {
  const Model model = ModelOf(GetParam());
  Machine machine = MachineOf(1, 4);
  const auto free = Optimize(model, Index(), CostModel(machine), Options());
  ASSERT_TRUE(free.ok()) << free.status();
  for (int64_t percent : {100, 75, 50, 35}) {
    machine.kinds[0].memory_bytes = free->plan.predicted_peak_bytes * percent / 100;
    const auto result = Optimize(model, Index(), CostModel(machine), Options());
    ASSERT_TRUE(result.ok()) << result.status();
    ExpectPlanHolds(result->plan, Rules());
    EXPECT_EQ(result->fits, result->plan.predicted_peak_bytes <= machine.memory_bytes());
    EXPECT_TRUE(result->fits || percent < 100);
  }
}

INSTANTIATE_TEST_SUITE_P(Small, OfTheZoo,
                         testing::Values("lenet?batch=16", "encoder", "digits_cnn",
                                         "dlrm?tables=4&rows=64&features=16&dense=16&"
                                         "bottom_hidden=32&top_hidden=32&batch=16"));

TEST(ExpertPlans, AreChosenByWhatTheModelHas) {
  const auto kind = [](const char* spec) { return ExpertKindOf(BuildZooModel(spec)->graph); };
  EXPECT_EQ(kind("lenet"), ExpertKind::kConvolution);
  EXPECT_EQ(kind("dlrm?rows=65536"), ExpertKind::kTables);
  EXPECT_EQ(kind("rnnlm"), ExpertKind::kRecurrent);
  EXPECT_EQ(kind("gshard_moe?experts=16&layers=4"), ExpertKind::kMixture);
  EXPECT_EQ(kind("gpt"), std::nullopt);
}

}  // namespace
}  // namespace isomer
