#include "optimizer/search/optimizer.h"

#include <algorithm>
#include <map>

#include <gtest/gtest.h>

#include "optimizer/report/plan_facts.h"
#include "optimizer/report/report.h"
#include "tests/optimizer/example_models.h"
#include "tests/optimizer/example_rules.h"
#include "tests/optimizer/plan_holds.h"
#include "tests/optimizer/test_machine.h"

namespace isomer {
namespace {

struct Scenario {
  const char* name;
  Model model;
  int64_t nodes, devices;
};

std::vector<Scenario> Scenarios() {
  return {{"ResidualOneDevice", ResidualModel(2, 8, 16, 32), 1, 1},
          {"ResidualTwoDevices", ResidualModel(3, 8, 16, 32), 1, 2},
          {"ResidualTwoNodes", ResidualModel(3, 64, 128, 256), 2, 4},
          {"ResidualSmallBatch", ResidualModel(2, 2, 512, 2048), 1, 8},
          {"ResidualThreeDevices", ResidualModel(2, 8, 16, 32), 1, 3},
          {"ThreeProducts", ThreeProducts(64, 64), 2, 2}};
}

class Optimizing : public testing::TestWithParam<Scenario> {
 protected:
  void Run(OptimizeOptions options) {
    const Scenario& s = GetParam();
    rules_ = ExampleRules(s.model.graph);
    index_ = std::make_unique<RuleIndex>(rules_);
    cost_ = std::make_unique<CostModel>(TestMachine(s.nodes, s.devices));
    auto result = Optimize(s.model, *index_, *cost_, options);
    ASSERT_TRUE(result.ok()) << result.status();
    result_ = *std::move(result);
  }

  RuleSet rules_;
  std::unique_ptr<RuleIndex> index_;
  std::unique_ptr<CostModel> cost_;
  OptimizeResult result_;
};

TEST_P(Optimizing, ThePlanHoldsAndNoBaselineIsFaster) {
  ASSERT_NO_FATAL_FAILURE(Run({}));
  ExpectPlanHolds(result_.plan, rules_);
  EXPECT_TRUE(result_.fits);
  EXPECT_GT(result_.plan.predicted_step_us, 0);
  ASSERT_EQ(result_.baselines.count(kDataParallel), 1u);
  for (const auto& [name, prediction] : result_.baselines) {
    EXPECT_LE(result_.plan.predicted_step_us, prediction.step_us) << name;
  }
  EXPECT_TRUE(ReportOf(result_, rules_, *cost_).ok());
}

TEST_P(Optimizing, BaselinesArePlansToo) {
  for (const char* name : {kDataParallel, kMegatron}) {
    // Needs pairs of products, and more than one device a node, evenly.
    const bool pairs = GetParam().model.name == "residual" && GetParam().devices % 2 == 0;
    if (name == std::string(kMegatron) && !pairs) continue;
    OptimizeOptions options;
    options.plan = name;
    ASSERT_NO_FATAL_FAILURE(Run(options));
    EXPECT_EQ(result_.origin, name);
    ExpectPlanHolds(result_.plan, rules_);
  }
}

TEST_P(Optimizing, InferencePlansHold) {
  OptimizeOptions options;
  options.training = false;
  ASSERT_NO_FATAL_FAILURE(Run(options));
  EXPECT_EQ(result_.plan.mode, "inference");
  ExpectPlanHolds(result_.plan, rules_);
}

INSTANTIATE_TEST_SUITE_P(Cases, Optimizing, testing::ValuesIn(Scenarios()),
                         [](const auto& info) { return info.param.name; });

int CountKind(const Graph& graph, OpKind kind) {
  int count = 0;
  for (int i = 0; i < graph.num_nodes(); ++i) count += graph.node(i).op.kind() == kind;
  return count;
}

TEST(Optimizer, ProductsOfOneOperandAreMergedWhereLaunchesCost) {
  const Model model = ThreeProducts(64, 16);
  const RuleSet rules = ExampleRules(model.graph);
  // On two, products run beside each other instead.
  Machine machine = TestMachine(1, 1);
  machine.kinds[0].launch_us = 20;
  const RuleIndex index(rules);
  const CostModel cost(machine);
  OptimizeOptions options;
  options.whole_machine = true;
  options.update.bucket_bytes = 0;  // Each weight has an update to launch.
  const auto result = Optimize(model, index, cost, options);
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_LT(CountKind(result->plan.graph, OpKind::kMatMul), 3);
  const auto used = RulesUsed(result->plan, rules);
  EXPECT_TRUE(std::any_of(used.begin(), used.end(),
                          [](const RuleUse& use) { return use.kind == "algebra"; }));
}

TEST(Optimizer, ASmallModelLeavesDevicesIdle) {
  const Model model = ThreeProducts(64, 16);
  const RuleSet rules = ExampleRules(model.graph);
  Machine machine = TestMachine(1, 2);
  machine.levels[0].latency_us = 1000;
  const RuleIndex index(rules);
  const CostModel cost(machine);
  const auto result = Optimize(model, index, cost, {});
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_LE(result->plan.predicted_step_us, result->single_device.step_us);
}

// Gradients are rounded where the links are what a step waits for, and where the user allows it.
TEST(Optimizer, GradientsAreSummedInLowPrecisionWhereThatIsWorthIt) {
  const Model model = ResidualModel(2, 512, 256, 1024);
  const RuleSet rules = ExampleRules(model.graph);
  const RuleIndex index(rules);
  OptimizeOptions options;
  options.plan = kDataParallel;
  const auto summed_in = [&](double bytes_per_us, bool chooses) {
    Machine machine = TestMachine(4, 1);
    machine.levels[1].bytes_per_us = bytes_per_us;
    const CostModel cost(machine);
    options.choose_gradient_sums = chooses;
    const auto result = Optimize(model, index, cost, options);
    EXPECT_TRUE(result.ok()) << result.status();
    ExpectPlanHolds(result->plan, rules);
    EXPECT_EQ(result->other_gradient_sums.has_value(), chooses);
    if (chooses) {
      const double us = result->plan.predicted_step_us,
                   other = result->other_gradient_sums->step_us;
      if (result->plan.update.gradient_sums == DataType::kFloat32) {
        EXPECT_LE(us, options.policy.lossy_gain * other);
      } else {
        EXPECT_LT(options.policy.lossy_gain * us, other);
      }
      EXPECT_TRUE(ReportOf(*result, rules, cost).ok());
    }
    return result->plan.update.gradient_sums;
  };
  constexpr double kSlow = 100, kFast = 1e9;
  EXPECT_EQ(summed_in(kSlow, false), DataType::kFloat32);
  EXPECT_EQ(summed_in(kSlow, true), DataType::kBFloat16);
  EXPECT_EQ(summed_in(kFast, true), DataType::kFloat32);
  options.policy.lossy_gain = 1e9;
  EXPECT_EQ(summed_in(kSlow, true), DataType::kFloat32);
}

TEST(Optimizer, LowPrecisionIsFasterAndTakesLessMemory) {
  const Model model = ResidualModel(2, 4096, 256, 1024);
  const RuleSet rules = ExampleRules(model.graph);
  const RuleIndex index(rules);
  Machine machine = TestMachine(1, 4);
  machine.kinds[0].flops_per_us_of[DataType::kBFloat16] = 2 * machine.kinds[0].flops_per_us;
  const CostModel cost(machine);
  const auto whole = Optimize(model, index, cost, {});
  OptimizeOptions options;
  options.precision = DataType::kBFloat16;
  const auto low = Optimize(model, index, cost, options);
  ASSERT_TRUE(whole.ok() && low.ok()) << low.status();
  EXPECT_EQ(low->plan.precision, DataType::kBFloat16);
  ExpectPlanHolds(low->plan, rules);
  EXPECT_LT(low->plan.predicted_step_us, 0.8 * whole->plan.predicted_step_us);
  EXPECT_LT(low->plan.predicted_peak_bytes, whole->plan.predicted_peak_bytes);
  EXPECT_TRUE(ReportOf(*low, rules, cost).ok());
}

// A product whose weight is far larger than its activations: moving the weight's gradient would
// cost more than anything else.
TEST(Optimizer, LargeWeightsAreSplitRatherThanReplicated) {
  const Model model = ResidualModel(2, 4, 1024, 4096);
  const RuleSet rules = ExampleRules(model.graph);
  const RuleIndex index(rules);
  const CostModel cost(TestMachine(1, 4));
  const auto result = Optimize(model, index, cost, {});
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_LT(result->plan.predicted_step_us, result->baselines.at(kDataParallel).step_us / 2);
  EXPECT_LT(result->plan.predicted_peak_bytes, result->baselines.at(kDataParallel).peak_bytes / 2);
}

// Nothing but the batch of 2 can be split, so that half of four devices would idle.
TEST(Optimizer, BranchesThatCannotUseTheWholeMachineRunBesideEachOther) {
  const Model model = TwoBranches(4, 2, 15);
  const RuleSet rules = ExampleRules(model.graph);
  const RuleIndex index(rules);
  Machine machine = TestMachine(1, 4);
  machine.kinds[0].launch_us = 50;
  const CostModel cost(machine);
  OptimizeOptions options;
  options.whole_machine = true;
  const auto result = Optimize(model, index, cost, options);
  ASSERT_TRUE(result.ok()) << result.status();
  ExpectPlanHolds(result->plan, rules);
  int on_upper_half = 0;
  for (int i = 0; i < result->plan.graph.num_nodes(); ++i) {
    on_upper_half +=
        result->plan.graph.node(i).op.kind() == OpKind::kTanh && result->plan.views[i].start == 2;
  }
  EXPECT_EQ(on_upper_half, 4);
  EXPECT_LT(result->plan.predicted_step_us, result->baselines.at(kDataParallel).step_us * 0.85);
}

TEST(Optimizer, MemoryThatHoldsOnlySplitWeightsIsObeyed) {
  const Model model = ResidualModel(2, 512, 256, 1024);
  const RuleSet rules = ExampleRules(model.graph);
  const RuleIndex index(rules);
  Machine machine = TestMachine(1, 4);
  const auto free = Optimize(model, index, CostModel(machine), {});
  ASSERT_TRUE(free.ok());
  machine.kinds[0].memory_bytes = free->plan.predicted_peak_bytes - 1;
  const auto tight = Optimize(model, index, CostModel(machine), {});
  ASSERT_TRUE(tight.ok());
  if (tight->fits) {
    EXPECT_LE(tight->plan.predicted_peak_bytes, machine.kinds[0].memory_bytes);
    EXPECT_GE(tight->plan.predicted_step_us, free->plan.predicted_step_us);
  }
  machine.kinds[0].memory_bytes = 1000;
  const auto none = Optimize(model, index, CostModel(machine), {});
  ASSERT_TRUE(none.ok());
  EXPECT_FALSE(none->fits);
  EXPECT_GT(none->plan.predicted_peak_bytes, 1000);
}

TEST(Optimizer, ReportFoldsRepeatedLayersAndNamesTheSplit) {
  const Model model = ResidualModel(8, 64, 128, 256);
  const RuleSet rules = ExampleRules(model.graph);
  const RuleIndex index(rules);
  const CostModel cost(TestMachine(2, 4));
  OptimizeOptions options;
  options.plan = kMegatron;
  options.whole_machine = true;  // no stages
  const auto result = Optimize(model, index, cost, options);
  ASSERT_TRUE(result.ok());
  const std::string report = ReportOf(*result, rules, cost).value().text;
  EXPECT_NE(report.find("block*/up/product matmul"), std::string::npos) << report;
  EXPECT_NE(report.find("rows over 2 nodes, columns over 4 devices of a node"), std::string::npos)
      << report;
  EXPECT_EQ(report.find("block3"), std::string::npos) << report;
  const std::string rule = RulesUsed(result->plan, rules)[0].id;
  EXPECT_EQ(report.find(rule), std::string::npos) << report;
  EXPECT_NE(report.find("proved rules (--verbose lists them)"), std::string::npos) << report;
  const std::string verbose = ReportOf(*result, rules, cost, /*verbose=*/true).value().text;
  EXPECT_NE(verbose.find(rule), std::string::npos) << verbose;
  EXPECT_NE(verbose.find("candidates over"), std::string::npos) << verbose;
}

}  // namespace
}  // namespace isomer
