#include "optimizer/proposal/parallel_config.h"
#include "optimizer/proposal/grid_estimate.h"

#include <algorithm>
#include <map>
#include <memory>
#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/substitute.h"
#include "optimizer/proposal/grid_mapping.h"
#include "optimizer/proposal/grid_plan.h"
#include "optimizer/proposal/grid_search.h"
#include "optimizer/simulator/stored_bytes.h"
#include "pcg/schedule/lowering/lower.h"
#include "tests/models/text_model.h"
#include "tests/optimizer/example_models.h"
#include "tests/optimizer/example_rules.h"
#include "tests/optimizer/plan_holds.h"
#include "tests/optimizer/test_machine.h"

namespace isomer {
namespace {

class Grids : public testing::Test {
 protected:
  void Prepare(Model model, int64_t nodes, int64_t devices) {
    model_ = std::move(model);
    rules_ = ExampleRules(model_.graph);
    index_ = std::make_unique<RuleIndex>(rules_);
    cost_ = std::make_unique<CostModel>(TestMachine(nodes, devices));
    tables_ = std::make_unique<CostTables>(*index_, *cost_, CostOptions{.halves = false});
  }
  std::vector<ConfigEstimate> Enumerate(int64_t memory_bytes) {
    GridGraph graphs(model_);
    auto estimates = EnumerateGrids(&graphs, {.devices = cost_->machine().num_devices()},
                                    memory_bytes, tables_.get());
    EXPECT_TRUE(estimates.ok()) << estimates.status();
    return estimates.ok() ? *std::move(estimates) : std::vector<ConfigEstimate>();
  }
  absl::StatusOr<Plan> PlanOf(const ParallelConfig& config) {
    tables_->set_options(OptionsOfStage(config, tables_->options()));
    auto mapped = MapGrid(model_.graph, config.degrees, tables_.get());
    if (!mapped.ok()) return mapped.status();
    const absl::Status spread = SpreadOverStages(config, {}, tables_.get(), &*mapped);
    if (!spread.ok()) return spread;
    return DerivePlan(model_, *mapped, true, tables_.get());
  }
  // Mapped by hand.
  ConfigEstimate EstimateOf(const ParallelConfig& config) {
    const CostOptions base = tables_->options();
    tables_->set_options(OptionsOfStage(config, base, /*by_hand=*/true));
    auto on_stage = MapGrid(model_.graph, config.degrees, tables_.get());
    auto calls = EstimateMapped(*on_stage, tables_.get());
    tables_->set_options(base);
    EXPECT_TRUE(calls.ok()) << calls.status();
    const BlockEstimates blocks(*calls);
    const GridOptions options{.devices = config.devices};
    const std::vector<bool> kept = KeptCalls(RecomputeMode::kNone, model_.graph, calls->compute);
    return EstimateGrid(config, options, *cost_, base, kept, blocks,
                        CutIntoChunks(config, options, *cost_, base, kept, blocks));
  }
  // The plan holds, and takes about as long as estimated.
  absl::StatusOr<Simulation> SimulatedAsEstimated(const ConfigEstimate& estimate,
                                                  absl::StatusOr<Plan>* plan) {
    if (!plan->ok()) return plan->status();
    ExpectPlanHolds(**plan, rules_);
    auto simulation = PredictPlan(*cost_, &**plan);
    if (!simulation.ok()) return simulation;
    EXPECT_LT(simulation->step_us, 4 * estimate.step_us);
    EXPECT_GT(simulation->step_us, estimate.step_us / 4);
    return simulation;
  }

  Model model_;
  RuleSet rules_;
  std::unique_ptr<RuleIndex> index_;
  std::unique_ptr<CostModel> cost_;
  std::unique_ptr<CostTables> tables_;
};

TEST_F(Grids, GridsOfTensorPipelineAndDataArePlans) {
  Prepare(ResidualModel(8, 64, 16, 32), 2, 4);
  int pipelines = 0, tensor = 0;
  for (const ConfigEstimate& estimate : Enumerate(int64_t{1} << 40)) {
    const ParallelConfig& config = estimate.config;
    if (config.micro_batches > 8) continue;
    SCOPED_TRACE(config.ToString());
    auto plan = PlanOf(config);
    auto simulation = SimulatedAsEstimated(estimate, &plan);
    ASSERT_TRUE(simulation.ok()) << simulation.status();
    tensor += config.degrees.tensor > 1;
    if (config.micro_batches == 1) continue;
    const auto summary = SummaryOfPipeline(LowerPlan(*plan)->schedule, *simulation);
    ASSERT_TRUE(summary.has_value());
    EXPECT_EQ(summary->stages, config.stages);
    EXPECT_EQ(summary->micro_batches, config.micro_batches);
    // Tensor parallel, too, where what lies between products is split further in the batch.
    EXPECT_TRUE(summary->ordered);
    pipelines += config.stages > 1;
  }
  EXPECT_GT(pipelines, 3);
  EXPECT_GT(tensor, 3);
}

// A configuration that should fit and does not: the next are looked at, though one is enough else.
TEST_F(Grids, AsLongAsNoneFitsOthersAreLookedAt) {
  Prepare(ResidualModel(8, 64, 16, 32), 2, 4);
  struct Looked {
    int plans = 0;
    bool fits = false;
  };
  const auto look = [&](int64_t memory_bytes, int64_t until_one_fits) {
    Machine machine = cost_->machine();
    machine.kinds[0].memory_bytes = memory_bytes;
    const CostModel small(machine);
    SearchPolicy policy;
    policy.mapped_grids = 1;
    policy.grids_until_one_fits = until_one_fits;
    CostTables tables(*index_, small, CostOptions{.halves = false});
    Contest contest(small, 1, nullptr, policy);
    GridSearchOptions options;
    options.grids = {.devices = 8, .policy = policy};
    options.estimates = Enumerate(memory_bytes);
    Looked looked;
    options.consider = [&](const MappedModel& mapped, const ParallelConfig& config,
                           const std::string& origin) -> absl::StatusOr<Prediction> {
      ++looked.plans;
      absl::StatusOr<Plan> plan = DerivePlan(model_, mapped, true, &tables);
      if (!plan.ok()) return plan.status();
      config.SetOptions(&*plan);
      return contest.Consider(*std::move(plan), origin);
    };
    GridGraph graphs(model_);
    EXPECT_TRUE(SearchGrids(&graphs, options, Deadline::In(0), contest, &tables).ok());
    looked.fits = contest.fits();
    return looked;
  };
  // At just the memory that a configuration is estimated to need.
  int too_low = 0, mended = 0;
  for (const ConfigEstimate& estimate : Enumerate(int64_t{1} << 40)) {
    if (too_low == 3) break;
    const Looked one = look(estimate.peak_bytes, 1);
    EXPECT_EQ(one.plans, 1);
    if (one.fits) continue;
    ++too_low;
    const Looked more = look(estimate.peak_bytes, 1000);
    EXPECT_TRUE(more.plans > 1 || estimate.peak_bytes <= Enumerate(1)[0].peak_bytes);
    mended += more.fits;
  }
  EXPECT_GT(too_low, 0);
  EXPECT_GT(mended, 0);
}

// ZeRO cuts a weight into equal parts, or not at all: of 16 x 32 there are no three.
TEST_F(Grids, WeightsWithoutEqualPartsAreWhole) {
  for (const int64_t hidden : {32, 48}) {
    SCOPED_TRACE(hidden);
    Prepare(ResidualModel(4, 24, 16, hidden), 1, 6);
    ParallelConfig whole{.devices = 6, .stages = 2, .micro_batches = 4}, in_parts = whole;
    in_parts.update = UpdateMethod::kShardedWeights;
    const int64_t saved = EstimateOf(whole).peak_bytes - EstimateOf(in_parts).peak_bytes;
    const auto bytes_of = [&](const ParallelConfig& config) {
      absl::StatusOr<Plan> plan = PlanOf(config);
      EXPECT_TRUE(plan.ok()) << plan.status();
      config.SetOptions(&*plan);
      ExpectPlanHolds(*plan, rules_);
      return LeastStoredBytes(*plan, plan->update);
    };
    const int64_t stored = bytes_of(whole) - bytes_of(in_parts);
    EXPECT_EQ(saved > 0, hidden == 48);
    EXPECT_EQ(stored > 0, hidden == 48);
  }
}

// Where there are samples for all devices, or no attention, nobody looks at splits of a sequence,
// nor at more than give each device a part of a sample.
TEST_F(Grids, SequencesAreSplitWhereSamplesAreTooFew) {
  const auto contexts_of = [&](Model model) {
    Prepare(std::move(model), 1, 8);
    std::set<int64_t> contexts;
    for (const ConfigEstimate& estimate : Enumerate(int64_t{1} << 40)) {
      contexts.insert(estimate.config.degrees.context);
    }
    return contexts;
  };
  const auto model_of = [](int64_t batch, const char* call) {
    return TextModel(absl::Substitute(R"(
%0 = input "x" : f32[$0,16,32]
%1 = weight "a" : f32[32,32]
%2 = input "target" : f32[$0,8,16,4]
%3 = matmul(%0, %1) : f32[$0,16,32]
%4 = reshape(%3) {shape=[$0,16,8,4]} : f32[$0,16,8,4]
%5 = transpose(%4) {perm=[0,2,1,3]} : f32[$0,8,16,4]
%6 = $1 : f32[$0,8,16,4]
%7 = mse(%6, %2) : f32[]
output "loss" = %7
)",
                                      batch, call));
  };
  const char* const attention = "attention(%5, %5, %5) {scale=0.5,causal=1}";
  EXPECT_THAT(contexts_of(model_of(2, attention)), testing::ElementsAre(1, 2, 4));
  EXPECT_THAT(contexts_of(model_of(1, attention)), testing::ElementsAre(1, 2, 4, 8));
  EXPECT_THAT(contexts_of(model_of(8, attention)), testing::ElementsAre(1));
  EXPECT_THAT(contexts_of(model_of(2, "relu(%5)")), testing::ElementsAre(1));
}

// However large the batch is, each number of stages has as many micro-batches as are worth it.
TEST_F(Grids, MicroBatchesOfLargeBatchesAreLarge) {
  for (const int64_t batch : {64, 4096, 262144}) {
    Prepare(ResidualModel(8, batch, 16, 32), 1, 8);
    std::map<int64_t, std::set<int64_t>> micro_batches;
    for (const ConfigEstimate& estimate : Enumerate(int64_t{1} << 40)) {
      const ParallelConfig& config = estimate.config;
      if (config.micro_batches > 1) micro_batches[config.stages].insert(config.micro_batches);
    }
    for (const int64_t stages : {2, 4, 8}) {
      EXPECT_TRUE(micro_batches[stages].contains(8 * stages)) << batch << ", " << stages;
    }
  }
}

// Also those that are not worth an estimate else: 16 micro-batches are of 1 or 3 samples, or of 6.
TEST_F(Grids, ThoseOfAUsersStepAlone) {
  Prepare(ResidualModel(8, 48, 16, 32), 1, 8);
  const auto all_of = [&](const Constraints::OfStep& step, bool chooses = false) {
    GridGraph graphs(model_);
    const auto estimates = EnumerateGrids(
        &graphs, {.devices = 8, .choose_update = chooses, .may_recompute = chooses, .step = step},
        int64_t{1} << 40, tables_.get());
    EXPECT_TRUE(estimates.ok()) << estimates.status();
    std::vector<ParallelConfig> configs;
    for (const ConfigEstimate& estimate : *estimates) configs.push_back(estimate.config);
    EXPECT_FALSE(configs.empty()) << step.ToString();
    return configs;
  };
  std::set<int64_t> sizes;
  for (const ParallelConfig& config : all_of({.micro_batches = 16})) {
    EXPECT_EQ(config.micro_batches, 16);
    sizes.insert(48 / 16 / config.data_degree());
  }
  EXPECT_TRUE(sizes.contains(3));
  for (const ParallelConfig& config : all_of({.stages = 4})) EXPECT_EQ(config.stages, 4);
  for (const ParallelConfig& config : all_of({.stages = 8, .micro_batches = 2})) {
    EXPECT_EQ(config.stages, 8);
    EXPECT_EQ(config.micro_batches, 2);
  }
  for (const ParallelConfig& config : all_of({.micro_batches = 1})) EXPECT_EQ(config.stages, 1);
  for (const ParallelConfig& config : all_of({.recompute = RecomputeMode::kSelective}, true)) {
    EXPECT_EQ(config.recomputation, RecomputeMode::kSelective);
  }
}

// A mixture's experts are shared out by devices that share out the batch of all else.
TEST_F(Grids, OfMixturesShareOutExperts) {
  Model mixture = TextModel(R"(
%0 = input "x" : f32[16,8,16]
%1 = input "slots" : i64[16,4,2]
%2 = input "places" : i64[16,8,2]
%3 = input "shares" : f32[16,8,2]
%4 = weight "up" : f32[4,16,32]
%5 = weight "down" : f32[4,32,16]
%6 = gather_rows(%0, %1) : f32[16,4,2,16]
%7 = matmul(%6, %4) : f32[16,4,2,32]
%8 = relu(%7) : f32[16,4,2,32]
%9 = matmul(%8, %5) : f32[16,4,2,16]
%10 = reshape(%9) {shape=[16,8,16]} : f32[16,8,16]
%11 = gather_sum(%10, %2, %3) : f32[16,8,16]
%12 = input "target" : f32[16,8,16]
%13 = mse(%11, %12) : f32[]
output "loss" = %13
)");
  mixture.loss = "loss";
  Prepare(std::move(mixture), 1, 8);
  int of_two = 0, of_four = 0;
  for (const ConfigEstimate& estimate : Enumerate(int64_t{1} << 40)) {
    const ParallelConfig& config = estimate.config;
    if (config.degrees.expert == 1) continue;
    SCOPED_TRACE(config.ToString());
    EXPECT_EQ(config.data_degree() % config.degrees.expert, 0);
    auto plan = PlanOf(config);
    const auto simulation = SimulatedAsEstimated(estimate, &plan);
    ASSERT_TRUE(simulation.ok()) << simulation.status();
    of_two += config.degrees.expert == 2;
    of_four += config.degrees.expert == 4;
  }
  EXPECT_GT(of_two, 3);
  EXPECT_GT(of_four, 3);
  GridOptions none{.devices = 8};
  none.policy.grid_experts = 1;
  GridGraph graphs(model_);
  const auto estimates = EnumerateGrids(&graphs, none, int64_t{1} << 40, tables_.get());
  ASSERT_TRUE(estimates.ok()) << estimates.status();
  for (const ConfigEstimate& estimate : *estimates) EXPECT_EQ(estimate.config.degrees.expert, 1);
}

TEST_F(Grids, ThoseThatFitComeFirst) {
  Prepare(ResidualModel(8, 64, 128, 512), 1, 4);
  const auto all = Enumerate(int64_t{1} << 40);
  ASSERT_GT(all.size(), 3u);
  EXPECT_TRUE(std::is_sorted(all.begin(), all.end(),
                             [](const auto& a, const auto& b) { return a.step_us < b.step_us; }));
  const auto smallest = std::min_element(all.begin(), all.end(), [](const auto& a, const auto& b) {
    return a.peak_bytes < b.peak_bytes;
  });
  EXPECT_EQ(Enumerate(smallest->peak_bytes).front().config, smallest->config);
  EXPECT_EQ(Enumerate(1).front().config, smallest->config);
}

TEST_F(Grids, LessIsKeptWhereWeightsAreShardedAndResultsComputedAgain) {
  Prepare(ResidualModel(8, 64, 128, 512), 1, 4);
  tables_->set_options({.optimizer = OptimizerKind::kAdam, .halves = false});
  GridGraph graphs(model_);
  auto estimates =
      EnumerateGrids(&graphs, {.devices = 4, .choose_update = true, .may_recompute = true},
                     int64_t{1} << 40, tables_.get());
  ASSERT_TRUE(estimates.ok()) << estimates.status();
  const auto estimate_of = [&](UpdateMethod update, bool recomputes) {
    const ParallelConfig config{
        .devices = 4,
        .micro_batches = 2,
        .update = update,
        .recomputation = recomputes ? RecomputeMode::kFull : RecomputeMode::kNone};
    const auto found = std::find_if(estimates->begin(), estimates->end(),
                                    [&](const auto& e) { return e.config == config; });
    EXPECT_NE(found, estimates->end()) << config.ToString();
    return found == estimates->end() ? ConfigEstimate() : *found;
  };
  const ConfigEstimate all = estimate_of(UpdateMethod::kAllReduce, false);
  const ConfigEstimate state = estimate_of(UpdateMethod::kSharded, false);
  const ConfigEstimate weights = estimate_of(UpdateMethod::kShardedWeights, false);
  const ConfigEstimate again = estimate_of(UpdateMethod::kAllReduce, true);
  EXPECT_LT(state.peak_bytes, all.peak_bytes);
  EXPECT_LT(weights.peak_bytes, state.peak_bytes);
  EXPECT_GT(weights.step_us, state.step_us);
  EXPECT_LT(again.peak_bytes, all.peak_bytes);
  EXPECT_GT(again.step_us, all.step_us);
}

// More chunks, and steps that are not drained apart, share a bubble out; two versions of weights,
// and the micro-batches that wait for other chunks, take memory.
TEST_F(Grids, BubblesShrinkWithChunksAndSteps) {
  Prepare(ResidualModel(8, 64, 128, 512), 1, 4);
  const auto estimate = [&](int64_t chunks, int32_t steps) {
    ParallelConfig config{4, 4, 8};
    config.chunks = chunks;
    config.steps_between_flushes = steps;
    return EstimateOf(config);
  };
  const ConfigEstimate drained = estimate(1, 1), interleaved = estimate(2, 1),
                       without = estimate(1, 4);
  EXPECT_LT(interleaved.step_us, drained.step_us);
  EXPECT_GT(interleaved.peak_bytes, drained.peak_bytes);
  EXPECT_LT(without.step_us, drained.step_us);
  EXPECT_GT(without.peak_bytes, drained.peak_bytes);
}

// Chunks take any number of micro-batches, also fewer than stages, and estimates are as near.
TEST_F(Grids, StepsOfChunksAreAsEstimatedForAnyNumberOfMicroBatches) {
  for (int64_t stages : {2, 4}) {
    for (int64_t chunks : {2, 3}) {
      for (int64_t n = 2; n <= 2 * stages + 1; ++n) {
        Prepare(ResidualModel(12, 256 * n, 1024, 4096), 1, stages);
        ParallelConfig config{stages, stages, n};
        config.chunks = chunks;
        SCOPED_TRACE(config.ToString());
        const ConfigEstimate estimate = EstimateOf(config);
        auto plan = PlanOf(config);
        const auto simulation = SimulatedAsEstimated(estimate, &plan);
        ASSERT_TRUE(simulation.ok()) << simulation.status();
        // With fewer than stages, gradients of weights hide in what the estimate counts as work.
        if (n < stages) continue;
        EXPECT_NEAR(simulation->step_us, estimate.step_us, 0.04 * estimate.step_us);
        EXPECT_LT(static_cast<double>(simulation->peak_bytes),
                  1.1 * static_cast<double>(estimate.peak_bytes));
      }
    }
  }
}

// What a stage gets from another it keeps for its backward pass: once, however many calls read it.
TEST_F(Grids, WhatIsReceivedIsKept) {
  Prepare(ResidualModel(1, 4, 16, 32), 1, 2);
  ComputeGraph::ComputeNode reads_first;
  reads_first.operands = {{.producer = 0}};
  MappedEstimate mapped;
  mapped.compute.nodes = {{}, reads_first, reads_first};
  mapped.calls.resize(3);
  mapped.calls[0].output_bytes = 1000;
  const auto peak_of = [&](int64_t stages, const std::vector<int>& stage_of_call, bool training) {
    return EstimateGrid({.devices = 2, .stages = stages, .micro_batches = 4}, {.devices = 2},
                        *cost_, {.training = training}, {true, true, true}, BlockEstimates(mapped),
                        stage_of_call)
        .peak_bytes;
  };
  EXPECT_EQ(peak_of(1, {0, 0, 0}, true), 0);
  EXPECT_EQ(peak_of(2, {0, 1, 1}, true), 1000);
  EXPECT_EQ(peak_of(2, {0, 1, 1}, false), 0);
}

// One sample a micro-batch and device is as far as it goes.
TEST_F(Grids, MicroBatchesDivideTheBatch) {
  Prepare(ResidualModel(4, 12, 16, 32), 1, 4);
  for (const ConfigEstimate& estimate : Enumerate(int64_t{1} << 40)) {
    const ParallelConfig& s = estimate.config;
    if (s.micro_batches == 1) continue;
    EXPECT_EQ(12 % (s.devices / s.stages / s.degrees.tensor * s.micro_batches), 0) << s.ToString();
  }
}

}  // namespace
}  // namespace isomer
