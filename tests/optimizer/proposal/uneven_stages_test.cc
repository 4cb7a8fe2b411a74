// Pipelines over unlike devices, against every cut of small ones.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "optimizer/proposal/grid_estimate.h"
#include "optimizer/proposal/grid_graph.h"
#include "optimizer/proposal/grid_mapping.h"
#include "optimizer/proposal/parallel_config.h"
#include "optimizer/proposal/recompute.h"
#include "optimizer/proposal/stages.h"
#include "optimizer/search/optimizer.h"
#include "optimizer/simulator/simulator.h"
#include "tests/optimizer/example_models.h"
#include "tests/optimizer/example_rules.h"
#include "tests/optimizer/plan_holds.h"
#include "tests/optimizer/test_machine.h"

namespace isomer {
namespace {

using testing::ElementsAre;

// A device of each kind, each a node of its own; the first is `fast` times as fast, and has
// `first_bytes` of memory, the second `second_bytes`.
Machine TwoDevices(double fast, int64_t first_bytes, int64_t second_bytes) {
  Machine machine = TestMachine(2, 1);
  machine.kinds.push_back(machine.kinds[0]);
  machine.kinds[0].name = "first";
  machine.kinds[1].name = "second";
  machine.kinds[0].flops_per_us *= fast;
  machine.kinds[0].memory_bytes_per_us *= fast;
  machine.kinds[0].memory_bytes = first_bytes;
  machine.kinds[1].memory_bytes = second_bytes;
  machine.kind_level = 1;
  machine.unit_kinds = {0, 1};
  return machine;
}

constexpr int64_t kEnough = int64_t{1} << 40;
constexpr int64_t kMicroBatches = 8;

class UnevenStages : public testing::Test {
 protected:
  void Prepare(Machine machine) {
    model_ = ResidualModel(8, 64, 512, 1024);
    rules_ = ExampleRules(model_.graph);
    index_ = std::make_unique<RuleIndex>(rules_);
    cost_ = std::make_unique<CostModel>(std::move(machine));
    tables_ = std::make_unique<CostTables>(*index_, *cost_, CostOptions{.halves = false});
  }

  ParallelConfig Config(std::vector<int64_t> blocks) const {
    return {.devices = 2, .stages = 2, .micro_batches = kMicroBatches, .blocks = std::move(blocks)};
  }

  // The mapping onto one stage.
  MappedModel OnOneStage(const ParallelConfig& config) {
    tables_->set_options(OptionsOfStage(config, tables_->options(), /*by_hand=*/true));
    return MapGrid(model_.graph, config.degrees, tables_.get()).value();
  }

  Plan PlanOf(const MappedModel& mapped) {
    return DerivePlan(model_, mapped, true, tables_.get()).value();
  }

  // Every cut of the calls in two, on the blocks in either order.
  struct Best {
    double step_us = std::numeric_limits<double>::infinity();
    std::vector<int64_t> blocks;
    size_t first_of_second = 0;
  };
  Best BestOfAllCuts() {
    Best best;
    for (const std::vector<int64_t>& blocks : {std::vector<int64_t>{0, 1}, {1, 0}}) {
      const MappedModel mapped = OnOneStage(Config(blocks));
      const ComputeGraph compute = AnalyzeCompute(mapped.graph, true);
      for (size_t cut = 1; cut < compute.nodes.size(); ++cut) {
        std::vector<int64_t> block_of_call(compute.nodes.size(), blocks[0]);
        std::fill(block_of_call.begin() + cut, block_of_call.end(), blocks[1]);
        MappedModel spread = mapped;
        MoveToBlocks(compute, block_of_call, 1, &spread);
        Plan plan = PlanOf(spread);
        const Simulation simulation = PredictPlan(*cost_, &plan).value();
        if (simulation.peak_bytes > cost_->machine().memory_bytes()) continue;
        if (simulation.step_us < best.step_us) best = {simulation.step_us, blocks, cut};
      }
    }
    return best;
  }

  OptimizeResult Search() {
    OptimizeOptions options;
    options.search.budget = 20;
    auto result = Optimize(model_, *index_, *cost_, options);
    EXPECT_TRUE(result.ok()) << result.status();
    return *std::move(result);
  }

  // Cut by the estimates; simulated.
  Prediction OfCut(const ParallelConfig& config) {
    MappedModel mapped = OnOneStage(config);
    EXPECT_TRUE(SpreadOverStages(config, {}, tables_.get(), &mapped).ok());
    Plan plan = PlanOf(mapped);
    ExpectPlanHolds(plan, rules_);
    const Simulation simulation = PredictPlan(*cost_, &plan).value();
    return {simulation.step_us, simulation.peak_bytes};
  }

  Model model_;
  RuleSet rules_;
  std::unique_ptr<RuleIndex> index_;
  std::unique_ptr<CostModel> cost_;
  std::unique_ptr<CostTables> tables_;
};

TEST_F(UnevenStages, AreAsGoodAsTheBestOfAllCuts) {
  for (double fast : {1.0, 2.0, 4.0}) {
    SCOPED_TRACE(fast);
    Prepare(TwoDevices(fast, kEnough, kEnough));
    const Best best = BestOfAllCuts();
    double of_cuts = std::numeric_limits<double>::infinity();
    for (const auto& blocks : OrdersOfBlocks(cost_->machine(), 2, 1)) {
      of_cuts = std::min(of_cuts, OfCut(Config(blocks)).step_us);
    }
    // The cut may take a twentieth longer where less crosses.
    EXPECT_LE(of_cuts, 1.06 * best.step_us) << "cut at " << best.first_of_second;
    EXPECT_LE(Search().plan.predicted_step_us, 1.06 * best.step_us);
  }
}

// Of two devices, of which one is four times as fast, stages in proportion take 8 / 5 of the time
// of the fast one's even stage less than equal ones.
TEST_F(UnevenStages, AreFasterThanEqualOnes) {
  Prepare(TwoDevices(4, kEnough, kEnough));
  const MappedModel mapped = OnOneStage(Config({}));
  const ComputeGraph compute = AnalyzeCompute(mapped.graph, true);
  std::vector<int64_t> halves(compute.nodes.size(), 0);
  std::fill(halves.begin() + halves.size() / 2, halves.end(), 1);
  MappedModel equal = mapped;
  MoveToBlocks(compute, halves, 1, &equal);
  Plan plan = PlanOf(equal);
  const double equal_us = PredictPlan(*cost_, &plan)->step_us;
  EXPECT_LT(OfCut(Config({})).step_us, 0.65 * equal_us);
}

// A device that is as fast, but holds little, has few of the calls, whether its stage is the first,
// which keeps activations of two micro-batches, or the last.
TEST_F(UnevenStages, FitIntoTheMemoryOfEachDevice) {
  Prepare(TwoDevices(1, kEnough, kEnough));
  const int64_t all = OfCut(Config({})).peak_bytes;
  Prepare(TwoDevices(1, kEnough, all / 2));
  const Best best = BestOfAllCuts();
  ASSERT_LT(best.step_us, std::numeric_limits<double>::infinity());
  int fit = 0;
  for (const auto& blocks : OrdersOfBlocks(cost_->machine(), 2, 1)) {
    const Prediction cut = OfCut(Config(blocks));
    if (cut.peak_bytes > cost_->machine().memory_bytes()) continue;
    ++fit;
    EXPECT_LE(cut.step_us, 1.3 * best.step_us);
  }
  EXPECT_GT(fit, 0);
  const OptimizeResult result = Search();
  EXPECT_TRUE(result.fits);
  EXPECT_LE(result.plan.predicted_step_us, 1.06 * best.step_us);
  // What it says of each kind are all its bytes.
  ASSERT_EQ(result.simulation.peak_bytes_of_kind.size(), 2u);
  EXPECT_LE(result.simulation.peak_bytes_of_kind.at(1), all / 2);
}

TEST_F(UnevenStages, OrdersOfBlocksAreThoseOfKinds) {
  Machine machine = TestMachine(4, 2);
  EXPECT_THAT(OrdersOfBlocks(machine, 4, 2), ElementsAre(std::vector<int64_t>{}));
  machine.kinds.push_back(machine.kinds[0]);
  machine.kind_level = 1;
  machine.unit_kinds = {0, 0, 1, 1};
  EXPECT_THAT(OrdersOfBlocks(machine, 1, 8), ElementsAre(std::vector<int64_t>{}));
  EXPECT_THAT(OrdersOfBlocks(machine, 2, 4),
              ElementsAre(std::vector<int64_t>{}, std::vector<int64_t>{1, 0}));
  EXPECT_THAT(OrdersOfBlocks(machine, 4, 2),
              ElementsAre(std::vector<int64_t>{}, std::vector<int64_t>{2, 3, 0, 1}));
  machine.unit_kinds = {0, 1};
  EXPECT_THAT(OrdersOfBlocks(machine, 4, 2),
              ElementsAre(std::vector<int64_t>{}, std::vector<int64_t>{0, 2, 1, 3},
                          std::vector<int64_t>{1, 3, 0, 2}));
}

// What a part of the machine can do alone, the whole can do, too, whatever comes first.
TEST_F(UnevenStages, NoPlanIsWorseThanThoseOfEvenClusters) {
  for (bool slow_first : {false, true}) {
    Machine machine = TwoDevices(16, kEnough, kEnough);
    if (slow_first) std::swap(machine.unit_kinds[0], machine.unit_kinds[1]);
    Prepare(std::move(machine));
    const OptimizeResult result = Search();
    ASSERT_EQ(result.even.size(), 4u);
    for (const EvenCluster& even : result.even) {
      ASSERT_TRUE(even.here.has_value()) << even.machine.name;
      EXPECT_LE(result.plan.predicted_step_us, even.here->step_us) << even.machine.name;
      if (even.is_part) {
        EXPECT_NEAR(even.here->step_us, even.there.step_us, 1e-6);
      }
      if (!even.is_part && even.machine.kinds[0].name == "second") {
        EXPECT_LE(even.here->step_us, even.there.step_us * (1 + 1e-9));
      }
    }
    const double without_loss = StepWithoutLoss(cost_->machine(), result.even);
    EXPECT_GT(without_loss, 0);
  }
}

}  // namespace
}  // namespace isomer
