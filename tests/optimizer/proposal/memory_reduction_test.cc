#include "optimizer/proposal/memory_reduction.h"

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "optimizer/proposal/recompute.h"
#include "optimizer/search/enough_devices.h"
#include "optimizer/search/optimizer.h"
#include "tests/optimizer/example_models.h"
#include "tests/optimizer/example_rules.h"
#include "tests/optimizer/plan_holds.h"
#include "tests/optimizer/test_machine.h"

namespace isomer {
namespace {

class MemoryReductionTest : public testing::Test {
 protected:
  explicit MemoryReductionTest(Model model)
      : model_(std::move(model)), rules_(ExampleRules(model_.graph)), index_(rules_) {}

  OptimizeResult OptimizeIn(int64_t memory_bytes) {
    Machine machine = TestMachine(1, 2);
    if (memory_bytes > 0) machine.kinds[0].memory_bytes = memory_bytes;
    machine.kinds[0].host_bytes_per_us = host_bytes_per_us_;
    OptimizeOptions options;
    options.search.budget = 10;
    options.choose_update_method = true;
    options.update.optimizer = optimizer_;
    auto result = Optimize(model_, index_, CostModel(machine), options);
    EXPECT_TRUE(result.ok()) << result.status();
    return *std::move(result);
  }

  // Fits into percentages of what the plan takes that nothing limits.
  void ExpectFits(const std::vector<int64_t>& percents) {
    const Plan free = OptimizeIn(0).plan;
    for (int64_t percent : percents) {
      SCOPED_TRACE(percent);
      const int64_t limit = free.predicted_peak_bytes * percent / 100;
      const OptimizeResult result = OptimizeIn(limit);
      EXPECT_TRUE(result.fits);
      EXPECT_LE(result.plan.predicted_peak_bytes, limit);
      ExpectPlanHolds(result.plan, rules_);
    }
  }

  // Data parallelism, which nothing but recomputation makes smaller.
  Plan FitAlone(int64_t memory_bytes) {
    Machine machine = TestMachine(1, 2);
    OptimizeOptions options;
    options.plan = kDataParallel;
    auto result = Optimize(model_, index_, CostModel(machine), options);
    EXPECT_TRUE(result.ok()) << result.status();
    if (memory_bytes > 0) machine.kinds[0].memory_bytes = memory_bytes;
    const CostModel cost(machine);
    Contest contest(cost);
    EXPECT_TRUE(contest.Consider(result->plan, "test").ok());
    const auto none = [](const SmallerPlan&) -> absl::StatusOr<std::optional<Plan>> {
      return std::nullopt;
    };
    const absl::Status fitted =
        ReduceMemory(cost, MemoryReductionOptions(), Deadline(), none, &contest);
    EXPECT_TRUE(fitted.ok()) << fitted;
    EXPECT_TRUE(contest.fits());
    return contest.best().plan;
  }

  const Model model_;
  const RuleSet rules_;
  const RuleIndex index_;
  double host_bytes_per_us_ = 0;
  OptimizerKind optimizer_ = OptimizerKind::kSgd;
};

// Activations fill the device: they are computed again, or come from small micro-batches.
class ManySamples : public MemoryReductionTest {
 protected:
  ManySamples() : MemoryReductionTest(ResidualModel(8, 8192, 64, 256)) {}
};

TEST_F(ManySamples, FitIntoAThird) { ExpectFits({100, 75, 50, 35}); }

TEST_F(ManySamples, LittleIsComputedAgainWhereLittleIsMissing) {
  const Plan free = FitAlone(0);
  const Plan little = FitAlone(free.predicted_peak_bytes * 95 / 100);
  const Plan much = FitAlone(free.predicted_peak_bytes * 50 / 100);
  EXPECT_TRUE(free.recomputed.empty());
  EXPECT_FALSE(little.recomputed.empty());
  EXPECT_LT(little.recomputed.size(), much.recomputed.size());
  EXPECT_LT(little.predicted_step_us, much.predicted_step_us);
  EXPECT_LE(much.predicted_peak_bytes, free.predicted_peak_bytes / 2);
}

// All between borders is computed again, where a little would do.
TEST_F(ManySamples, NoMoreIsComputedAgainThanMemoryWants) {
  const Plan free = FitAlone(0);
  Machine machine = TestMachine(1, 2);
  machine.kinds[0].memory_bytes = free.predicted_peak_bytes * 90 / 100;
  const CostModel cost(machine);
  Plan all = free;
  all.recomputed = RecomputedNodes(RecomputeMode::kFull, all.graph);
  Contest contest(cost);
  const auto before = contest.Consider(all, "test");
  ASSERT_TRUE(before.ok()) << before.status();
  ASSERT_TRUE(contest.fits());
  const absl::Status done = RecomputeLess(cost, MemoryReductionOptions(), Deadline(), &contest);
  EXPECT_TRUE(done.ok()) << done;
  EXPECT_TRUE(contest.fits());
  const Plan& less = contest.best().plan;
  EXPECT_FALSE(less.recomputed.empty());
  EXPECT_LT(less.recomputed.size(), all.recomputed.size());
  EXPECT_LT(less.predicted_step_us, before->step_us);
  EXPECT_GT(less.predicted_step_us, free.predicted_step_us);
  ExpectPlanHolds(less, rules_);
  // Nothing is left to gain.
  EXPECT_TRUE(RecomputeLess(cost, MemoryReductionOptions(), Deadline(), &contest).ok());
  EXPECT_EQ(contest.best().plan.recomputed, less.recomputed);
}

// Weights and what belongs to them fill it, and are in parts on both devices already.
class WideLayers : public MemoryReductionTest {
 protected:
  WideLayers() : MemoryReductionTest(ResidualModel(4, 8, 256, 1024)) {}
};

TEST_F(WideLayers, FitWithOneGradientAtATime) { ExpectFits({100, 75}); }

TEST_F(WideLayers, FitIntoAThirdWithStatesOnTheHost) {
  optimizer_ = OptimizerKind::kAdam;
  const Plan free = OptimizeIn(0).plan;
  const int64_t third = free.predicted_peak_bytes * 35 / 100;
  EXPECT_FALSE(OptimizeIn(third).fits);
  host_bytes_per_us_ = 1e4;
  ExpectFits({35});
  const Plan fast = OptimizeIn(third).plan;
  EXPECT_TRUE(fast.update.states_on_host);
  host_bytes_per_us_ = 1e3;
  EXPECT_GT(OptimizeIn(third).plan.predicted_step_us, fast.predicted_step_us);
}

TEST_F(WideLayers, SayWhatIsMissingAndHowManyNodesWouldDo) {
  const int64_t limit = OptimizeIn(0).plan.predicted_peak_bytes * 35 / 100;
  const OptimizeResult result = OptimizeIn(limit);
  EXPECT_FALSE(result.fits);
  Machine machine = TestMachine(1, 2);
  machine.kinds[0].memory_bytes = limit;
  const auto nodes = EnoughNodes(model_, index_, CostModel(machine), OptimizeOptions(),
                                 result.plan.predicted_peak_bytes);
  ASSERT_TRUE(nodes.ok()) << nodes.status();
  ASSERT_TRUE(nodes->has_value());
  EXPECT_GE(**nodes, 2);
  EXPECT_LE(**nodes, 4);
  const std::string text = DoesNotFitText(result, machine, *nodes);
  EXPECT_NE(text.find("of weights"), std::string::npos) << text;
  EXPECT_NE(text.find("; a plan fits on "), std::string::npos) << text;
}

TEST(LeastBytesOnMore, IsWhatTheLastDoublingSavedAtEach) {
  EXPECT_DOUBLE_EQ(LeastBytesOnMore(200, 100, 4), 25);
  EXPECT_DOUBLE_EQ(LeastBytesOnMore(100, 90, 4), 90 * 0.9 * 0.9);
  EXPECT_DOUBLE_EQ(LeastBytesOnMore(100, 90, 1), 90);
  EXPECT_DOUBLE_EQ(LeastBytesOnMore(90, 100, 32), 100);
  // What nodes share, 64, and what each has, 10: on four times as many it is no less.
  EXPECT_LE(LeastBytesOnMore(10 + 64, 10 + 32, 4), 10 + 8);
}

// Where no number of nodes would do, the first search of more tells.
TEST_F(WideLayers, SayAtOnceThatNoNumberOfNodesWouldDo) {
  const int64_t limit = OptimizeIn(0).plan.predicted_peak_bytes / 1000;
  const OptimizeResult result = OptimizeIn(limit);
  EXPECT_FALSE(result.fits);
  Machine machine = TestMachine(1, 2);
  machine.kinds[0].memory_bytes = limit;
  OptimizeOptions options;
  options.policy.enough_devices_seconds = 1e6;
  // As if that were the workspace of a kernel, which all devices have.
  const auto nodes = EnoughNodes(model_, index_, CostModel(machine), options, limit + 1);
  ASSERT_TRUE(nodes.ok()) << nodes.status();
  EXPECT_FALSE(nodes->has_value());
}

int64_t OutputBytes(const Model& model) {
  int64_t bytes = 0;
  for (const Graph::NamedOutput& output : model.graph.outputs()) {
    bytes += model.graph.type(output.tensor).LocalBytes();
  }
  return bytes;
}

int64_t WeightBytesOf(const Graph& graph) {
  int64_t bytes = 0;
  for (int id = 0; id < graph.num_nodes(); ++id) {
    const Node& node = graph.node({id});
    if (node.op.kind() == OpKind::kWeight) bytes += node.outputs[0].LocalBytes();
  }
  return bytes;
}

TEST_F(ManySamples, SayWhichOutputIsLargerThanADevice) {
  Machine machine = TestMachine(1, 2);
  const int64_t bytes = OutputBytes(model_);
  OptimizeOptions options;
  machine.kinds[0].memory_bytes = bytes;
  EXPECT_EQ(NoPlanFitsText(model_, options, machine), std::nullopt);
  machine.kinds[0].memory_bytes = bytes - 1;
  const std::string training = NoPlanFitsText(model_, options, machine).value_or("");
  EXPECT_NE(training.find("output '"), std::string::npos) << training;
  EXPECT_NE(training.find("--loss_alone"), std::string::npos) << training;
  options.training = false;
  const std::string inference = NoPlanFitsText(model_, options, machine).value_or("");
  EXPECT_NE(inference.find("output '"), std::string::npos) << inference;
  EXPECT_EQ(inference.find("--loss_alone"), std::string::npos) << inference;
}

// Of all devices together; in training what Adam keeps is there, too, unless hosts may have it.
TEST_F(WideLayers, AreLargerThanAllDevices) {
  Machine machine = TestMachine(1, 2);
  const int64_t bytes = WeightBytesOf(model_.graph);
  ASSERT_GT(bytes, 2 * OutputBytes(model_));
  OptimizeOptions options;
  options.update.optimizer = OptimizerKind::kAdam;
  machine.kinds[0].memory_bytes = bytes / 2;
  EXPECT_NE(NoPlanFitsText(model_, options, machine), std::nullopt);
  options.training = false;
  EXPECT_EQ(NoPlanFitsText(model_, options, machine), std::nullopt);
  machine.kinds[0].memory_bytes = bytes / 2 - 1;
  EXPECT_NE(NoPlanFitsText(model_, options, machine).value_or("").find("weights are"),
            std::string::npos);
  options.training = true;
  machine.kinds[0].memory_bytes = 3 * bytes / 2;
  EXPECT_EQ(NoPlanFitsText(model_, options, machine), std::nullopt);
  machine.kinds[0].memory_bytes -= 1;
  EXPECT_NE(NoPlanFitsText(model_, options, machine).value_or("").find("it takes 2 such nodes"),
            std::string::npos);
  machine.kinds[0].host_bytes_per_us = 1000;
  EXPECT_EQ(NoPlanFitsText(model_, options, machine), std::nullopt);
}

// Beside a loss, whose gradient is all that training needs.
TEST_F(WideLayers, SayWhichOutputLeavesADeviceNoRoom) {
  Machine machine = TestMachine(1, 2);
  machine.kinds[0].memory_bytes = 8 * OutputBytes(model_);
  EXPECT_EQ(OutputsLeaveNoRoomText(model_, machine), std::nullopt);
  machine.kinds[0].memory_bytes -= 8;
  const std::string text = OutputsLeaveNoRoomText(model_, machine).value_or("");
  EXPECT_NE(text.find("output '"), std::string::npos) << text;
  EXPECT_NE(text.find("--loss_alone=false"), std::string::npos) << text;
}

}  // namespace
}  // namespace isomer
