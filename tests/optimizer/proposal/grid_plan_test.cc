#include "optimizer/proposal/grid_plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <optional>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/substitute.h"
#include "optimizer/cost/timeline.h"
#include "optimizer/report/report.h"
#include "optimizer/report/throughput.h"
#include "optimizer/search/optimizer.h"
#include "optimizer/sharding/batch_dims.h"
#include "optimizer/sharding/stage_cut.h"
#include "tests/models/text_model.h"
#include "tests/optimizer/example_models.h"
#include "tests/optimizer/example_rules.h"
#include "tests/optimizer/plan_holds.h"
#include "tests/optimizer/test_machine.h"
#include "tests/pcg/schedule/pipeline_graphs.h"

namespace isomer {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

TEST(StageCut, BalancesTimes) {
  EXPECT_THAT(CutStages({1, 1, 1, 1, 1, 1}, {0, 9, 9, 9, 9, 9}, 3), ElementsAre(0, 2, 4));
  EXPECT_THAT(CutStages({6, 1, 1, 1, 1, 2}, {0, 9, 9, 9, 9, 9}, 2), ElementsAre(0, 1));
  EXPECT_THAT(CutStages({1, 2}, {0, 5}, 1), ElementsAre(0));
}

TEST(StageCut, CutsWhereLittleCrosses) {
  // Stages of up to 5 % more than 100: the cut may move by a call of 5.
  EXPECT_THAT(CutStages({50, 45, 5, 50, 50}, {0, 9, 9, 1, 9}, 2), ElementsAre(0, 3));
  EXPECT_THAT(CutStages({50, 45, 5, 50, 50}, {0, 9, 1, 9, 9}, 2), ElementsAre(0, 2));
}

TEST(StageCut, EveryStageHasACall) {
  EXPECT_THAT(CutStages({0, 0, 0, 10}, {0, 0, 0, 0}, 4), ElementsAre(0, 1, 2, 3));
  EXPECT_THAT(CutStages({10, 1, 1}, {0, 7, 7}, 3), ElementsAre(0, 1, 2));
}

TEST(StageCut, KeepsToTheStagesThatCallsMayBeIn) {
  const std::vector<double> us(6, 1);
  const std::vector<int64_t> crossing(6, 0);
  std::vector<StageRange> allowed(6);
  allowed[1] = {1, 1};
  EXPECT_THAT(CutStages(us, crossing, 3, allowed), ElementsAre(0, 1, testing::_));
  allowed[5] = {0, 1};
  EXPECT_THAT(CutStages(us, crossing, 2, allowed), ElementsAre(0, 1));
  // Nothing is left for the third stage.
  EXPECT_THAT(CutStages(us, crossing, 3, allowed), ElementsAre());
}

// The share of a step in which a device waits, if a layer takes 1 forward and 2 backward, of which
// the gradient of its weight takes `weight`.
double BubbleOf(const StagedMlp& pipeline, Picoseconds weight) {
  const PipelineGraphs graphs = MakePipeline(pipeline);
  const Schedule schedule = LoweredPipeline(pipeline, graphs.mapped);
  TaskList tasks;
  int64_t busy = 0;
  std::set<std::pair<NodeId, int32_t>> sent;  // gradients of data
  for (const Task& task : schedule.tasks) {
    const bool product = graphs.mapped.graph.node(task.node).op.kind() == OpKind::kMatMul;
    Picoseconds duration = 0;
    if (product && task.kind == TaskKind::kCompute) duration = 1;
    if (product && task.kind == TaskKind::kComputeGradient) {
      const bool of_data = task.writes[0] != kNoBuffer, of_weight = task.writes[1] != kNoBuffer;
      if (of_data) sent.insert({task.node, task.shard});
      duration = of_data == of_weight || !sent.contains({task.node, task.shard}) ? 2
                 : of_data                                                       ? 2 - weight
                                                                                 : weight;
    }
    if (task.devices[0] == 0) busy += duration;
    std::vector<int32_t> queues;
    if (duration > 0) queues.push_back(task.devices[0]);
    tasks.Add(duration, queues, task.deps);
  }
  return 1 - static_cast<double>(busy) / static_cast<double>(RunTimeline(tasks).makespan);
}

TEST(Pipeline, BubbleIsThatOfTheFormula) {
  for (int64_t stages : {1, 2, 4}) {
    for (int64_t micro_batches : {1, 2, 3, 4, 8, 16}) {
      const StagedMlp pipeline{.layers = stages, .stages = stages, .micro_batches = micro_batches};
      const double bubble =
          static_cast<double>(stages - 1) / static_cast<double>(micro_batches + stages - 1);
      EXPECT_DOUBLE_EQ(BubbleOf(pipeline, 0), bubble) << pipeline.Name();
      // What the stage before waits for is sent first.
      if (stages > 1) {
        EXPECT_LT(BubbleOf(pipeline, 1), bubble) << pipeline.Name();
      }
    }
  }
}

struct Made {
  RuleSet rules;
  absl::StatusOr<OptimizeResult> result;
  std::string report;
};

// Of so many stages, micro-batches and chunks.
struct Pipeline {
  int64_t stages = 1, micro_batches = 1, chunks = 1;
};
GridRequest RequestOf(const Model& model, int64_t devices, const Pipeline& pipeline) {
  const auto& [stages, micro_batches, chunks] = pipeline;
  return {.stages = stages,
          .chunks = chunks,
          .micro_batch_size = BatchSize(model.graph) / (devices / stages * micro_batches)};
}

Made Optimized(const Model& model, int64_t devices, const GridRequest& request,
               bool training = true, int32_t steps_between_flushes = 1) {
  Made made{ExampleRules(model.graph), absl::UnknownError("not yet"), ""};
  const RuleIndex index(made.rules);
  const CostModel cost(TestMachine(1, devices));
  OptimizeOptions all;
  all.plan = kGrid;
  all.grid = request;
  all.training = training;
  all.steps_between_flushes = steps_between_flushes;
  made.result = Optimize(model, index, cost, all);
  if (made.result.ok()) {
    const auto report = ReportOf(*made.result, made.rules, cost);
    EXPECT_TRUE(report.ok()) << report.status();
    if (report.ok()) made.report = report->text;
  }
  return made;
}

TEST(PipelinePlan, HoldsForStagesAndDataParallelism) {
  const Model model = ResidualModel(4, 16, 16, 32);
  for (int64_t stages : {1, 2, 4}) {
    for (int64_t micro_batches : {1, 2, 4}) {
      for (bool training : {true, false}) {
        const Made made =
            Optimized(model, 4, RequestOf(model, 4, {stages, micro_batches}), training);
        ASSERT_TRUE(made.result.ok()) << made.result.status();
        EXPECT_EQ(made.result->origin, kGrid);
        ExpectPlanHolds(made.result->plan, made.rules);
        if (micro_batches == 1) continue;
        ASSERT_TRUE(made.result->pipeline.has_value());
        EXPECT_EQ(made.result->pipeline->stages, stages);
        EXPECT_EQ(made.result->pipeline->micro_batches, micro_batches);
        EXPECT_TRUE(made.result->pipeline->ordered);
        EXPECT_GE(made.result->pipeline->idle_share, 0);
        EXPECT_THAT(made.report, HasSubstr(" micro-batches (1F1B)"));
      }
    }
  }
}

// Every stage keeps its own weights: less a device than data parallelism keeps.
TEST(PipelinePlan, StagesKeepTheirOwnWeights) {
  const Model model = ResidualModel(8, 16, 64, 256);
  const Made made = Optimized(model, 4, RequestOf(model, 4, {4, 4}));
  ASSERT_TRUE(made.result.ok()) << made.result.status();
  EXPECT_LT(made.result->plan.predicted_peak_bytes,
            made.result->baselines.at(kDataParallel).peak_bytes / 2);
}

// Two chunks a stage halve the bubble, steps that are not drained apart share one; no plan computes
// anything else for that.
TEST(PipelinePlan, ChunksAndStepsWithoutFlushesHaveLessOfABubble) {
  const Model model = ResidualModel(8, 64, 128, 512);
  const auto made = [&](int64_t chunks, int32_t steps) {
    const Made made =
        Optimized(model, 4, RequestOf(model, 4, {4, 8, chunks}), /*training=*/true, steps);
    EXPECT_TRUE(made.result.ok()) << made.result.status();
    ExpectPlanHolds(made.result->plan, made.rules);
    EXPECT_EQ(made.result->pipeline->stages, 4);
    EXPECT_EQ(made.result->pipeline->micro_batches, 8);
    EXPECT_EQ(made.result->pipeline->chunks, chunks);
    EXPECT_EQ(made.result->pipeline->steps, steps);
    EXPECT_DOUBLE_EQ(made.result->pipeline->bubble_share,
                     3.0 / static_cast<double>(8 * chunks * steps + 3));
    return made;
  };
  const Made drained = made(1, 1), interleaved = made(2, 1), without = made(1, 4);
  EXPECT_LT(interleaved.result->pipeline->idle_share, drained.result->pipeline->idle_share);
  EXPECT_LT(without.result->pipeline->idle_share, drained.result->pipeline->idle_share);
  EXPECT_LT(without.result->plan.predicted_step_us, drained.result->plan.predicted_step_us);
  EXPECT_GT(without.result->plan.predicted_peak_bytes, drained.result->plan.predicted_peak_bytes);
  EXPECT_THAT(interleaved.report, HasSubstr("8 micro-batches (1F1B, 2 chunks a stage)"));
  EXPECT_THAT(without.report, HasSubstr("drained after 4 steps (2BW: gradients are a step late)"));
}

// Gradients of weights fill bubbles, where what a stage computes is long beside messages and the
// beginnings of kernels, of which there are more.
TEST(PipelinePlan, BackwardPassesInTwoHalvesHaveLessOfABubble) {
  const Model model = ResidualModel(8, 8192, 1024, 4096);
  const auto made = [&](std::optional<PipelineSchedule> schedule) {
    GridRequest request = RequestOf(model, 4, {4, 8});
    request.schedule = schedule;
    const Made made = Optimized(model, 4, request);
    EXPECT_TRUE(made.result.ok()) << made.result.status();
    ExpectPlanHolds(made.result->plan, made.rules);
    EXPECT_EQ(made.result->misfit, "");
    EXPECT_EQ(made.result->pipeline->stages, 4);
    EXPECT_EQ(made.result->pipeline->micro_batches, 8);
    return made;
  };
  const Made whole = made(PipelineSchedule::k1F1B), h1 = made(PipelineSchedule::kZbH1),
             h2 = made(PipelineSchedule::kZbH2), v = made(PipelineSchedule::kZbV),
             best = made(std::nullopt);
  const auto step_us = [](const Made& made) { return made.result->plan.predicted_step_us; };
  EXPECT_LT(step_us(h1), step_us(whole));
  EXPECT_LT(step_us(v), step_us(whole));
  EXPECT_LT(h1.result->pipeline->bubble_share, whole.result->pipeline->bubble_share);
  EXPECT_LT(h1.result->pipeline->idle_share, whole.result->pipeline->idle_share);
  EXPECT_GE(h2.result->plan.predicted_peak_bytes, h1.result->plan.predicted_peak_bytes);
  EXPECT_EQ(v.result->pipeline->chunks, 2);
  EXPECT_EQ(step_us(best), std::min({step_us(whole), step_us(h1), step_us(h2), step_us(v)}));
  EXPECT_THAT(h1.report, HasSubstr("8 micro-batches (ZB-H1)"));
  EXPECT_THAT(v.report, HasSubstr("8 micro-batches (ZB-V, 2 chunks a stage)"));
}

// Chunks take any number of micro-batches, and every one of the same size takes as long: a step is
// longer than that of one less, and shorter than without chunks.
TEST(PipelinePlan, ChunksTakeAnyNumberOfMicroBatches) {
  for (int64_t stages : {2, 3, 4}) {
    for (int64_t chunks : {2, 3}) {
      double before_us = 0;
      for (int64_t n = 2; n <= 2 * stages + 1; ++n) {
        SCOPED_TRACE(absl::StrCat(n, " micro-batches in ", stages, "x", chunks));
        const Model model = ResidualModel(stages * chunks, 64 * n, 128, 512);
        const Made made = Optimized(model, stages, RequestOf(model, stages, {stages, n, chunks}));
        ASSERT_TRUE(made.result.ok()) << made.result.status();
        ExpectPlanHolds(made.result->plan, made.rules);
        EXPECT_EQ(made.result->misfit, "");
        const PipelineSummary& is = *made.result->pipeline;
        EXPECT_EQ(is.stages, stages);
        EXPECT_EQ(is.chunks, chunks);
        EXPECT_EQ(is.micro_batches, n);
        EXPECT_EQ(is.round, n < 2 * stages ? n : n == 2 * stages ? stages : stages + 1);
        if (is.round != stages) {
          EXPECT_THAT(made.report, HasSubstr(absl::StrCat(chunks, " chunks a stage, rounds of up ",
                                                          "to ", is.round, ")")));
        }
        const double step_us = made.result->plan.predicted_step_us;
        EXPECT_GT(step_us, before_us);
        before_us = step_us;
        if (chunks > 2) continue;
        const Made whole = Optimized(model, stages, RequestOf(model, stages, {stages, n}));
        ASSERT_TRUE(whole.result.ok()) << whole.result.status();
        EXPECT_LT(step_us, whole.result->plan.predicted_step_us);
        EXPECT_LT(is.bubble_share, whole.result->pipeline->bubble_share);
      }
    }
  }
}

TEST(GridPlan, RefusesInALineThatNamesTheFlag) {
  const Model model = ResidualModel(2, 6, 16, 32);  // six samples
  const auto refused = [&](const GridRequest& request) {
    return std::string(Optimized(model, 4, request).result.status().message());
  };
  EXPECT_THAT(refused({.stages = 3}), HasSubstr("--pipeline=3: 3 does not divide 4 devices"));
  EXPECT_THAT(refused({.degrees = {.tensor = 2}, .stages = 4}),
              HasSubstr("--tensor=2 x --pipeline=4: 8 does not divide 4 devices"));
  EXPECT_THAT(refused({.stages = 2, .micro_batch_size = 2}),
              HasSubstr("--micro_batch_size=2 on 2 data-parallel devices: 4 does not divide the "
                        "batch of 6"));
  EXPECT_THAT(refused({.stages = 0}), HasSubstr("--pipeline: degrees are 1 to "));
  EXPECT_THAT(refused({.degrees = {.expert = 3}}),
              HasSubstr("--expert=3 does not divide the 4 data-parallel devices"));
  EXPECT_THAT(refused({.degrees = {.expert = 2}, .stages = 2}),
              HasSubstr("--expert=2: the model has no products of so many experts"));
  EXPECT_THAT(refused({.stages = 4, .chunks = 0}), HasSubstr("--pipeline: degrees"));
  EXPECT_THAT(refused({.stages = 2, .micro_batch_size = -1}), HasSubstr("--micro_batch_size"));
  constexpr int64_t kHuge = std::numeric_limits<int64_t>::max();
  EXPECT_THAT(refused({.degrees = {.tensor = kHuge}, .stages = kHuge}),
              HasSubstr("--tensor: degrees are 1 to "));
  EXPECT_THAT(refused({.micro_batch_size = kHuge}), HasSubstr("it is 1 to the batch of 6"));
}

TEST(GridPlan, TensorPipelineAndDataParallelismTogether) {
  const Model model = ResidualModel(4, 16, 16, 32);
  const GridRequest request = {.degrees = {.tensor = 2},
                               .stages = 2,
                               .micro_batch_size = 2,
                               .recomputation = RecomputeMode::kFull};
  const Made made = Optimized(model, 8, request);
  ASSERT_TRUE(made.result.ok()) << made.result.status();
  ExpectPlanHolds(made.result->plan, made.rules);
  EXPECT_EQ(made.result->pipeline->micro_batches, 4);
  EXPECT_EQ(made.result->misfit, "");
  EXPECT_FALSE(made.result->plan.recomputed.empty());
  EXPECT_THAT(made.report, HasSubstr("columns over 2 devices of a node"));
}

// So many micro-batches that two simulations of fewer stand for them: what these take, and what
// the most of them keep at a time, is that of all.
TEST(GridPlan, StepOfManyMicroBatchesIsThatOfAll) {
  struct Many {
    int64_t stages, micro_batches, chunks, simulated;
  };
  for (const auto& [stages, n, chunks, simulated] :
       {Many{2, 2048, 1, 8}, Many{4, 258, 1, 16}, Many{4, 265, 1, 16}, Many{2, 256, 2, 8},
        Many{2, 265, 2, 12}, Many{4, 258, 2, 20}, Many{4, 260, 3, 8}, Many{4, 265, 3, 20}}) {
    SCOPED_TRACE(absl::StrCat(n, " micro-batches in ", stages, "x", chunks));
    const Model model = ResidualModel(16, n * 4 / stages, 16, 32);
    const Made made =
        Optimized(model, 4, {.stages = stages, .chunks = chunks, .micro_batch_size = 1});
    ASSERT_TRUE(made.result.ok()) << made.result.status();
    const Simulation& simulation = made.result->simulation;
    EXPECT_EQ(simulation.micro_batches, n);
    EXPECT_EQ(simulation.simulated_micro_batches, simulated);
    EXPECT_EQ(made.result->pipeline->micro_batches, n);
    EXPECT_EQ(made.result->pipeline->chunks, chunks);
    const CostModel cost(TestMachine(1, 4));
    const auto lowered = LowerPlan(made.result->plan);
    ASSERT_TRUE(lowered.ok()) << lowered.status();
    const MemoryPlan memory = PlanMemory(lowered->schedule, kMostQueues);
    const Simulation all = Simulate(cost, lowered->mapped.graph, lowered->schedule, &memory);
    EXPECT_NEAR(simulation.step_us, all.step_us, 1e-2 * all.step_us);
    EXPECT_NEAR(simulation.compute_us, all.compute_us, 1e-6 * all.compute_us);
    EXPECT_NEAR(simulation.communication_us, all.communication_us, 1e-6 * all.communication_us);
    EXPECT_EQ(made.result->pipeline->round, SummaryOfPipeline(lowered->schedule, all)->round);
    EXPECT_THAT(made.report, HasSubstr(absl::StrCat(n, " micro-batches (1F1B")));
  }
}

// Where all micro-batches are on their way before the first comes back, gradients come as what was
// kept goes.
TEST(GridPlan, EstimatesOfMemoryAreNear) {
  for (const int64_t width : {64, 512}) {
    for (const int64_t n : {4, 8, 16}) {
      for (const int64_t chunks : {1, 2, 4}) {
        SCOPED_TRACE(absl::StrCat(n, " micro-batches, ", chunks, " chunks, width ", width));
        const Model model = ResidualModel(16, 256 * n, width, width);
        const Made made =
            Optimized(model, 4, {.stages = 4, .chunks = chunks, .micro_batch_size = 256});
        ASSERT_TRUE(made.result.ok()) << made.result.status();
        const RuleIndex index(made.rules);
        const CostModel cost(TestMachine(1, 4));
        CostTables tables(index, cost, {});
        GridGraph graphs(model);
        GridOptions options{.devices = 4, .may_recompute = false};
        options.policy.grid_micro_batch_size = 256;
        options.step = {.stages = 4, .chunks = chunks, .micro_batches = n};
        const auto estimates = EnumerateGrids(&graphs, options, int64_t{1} << 40, &tables);
        ASSERT_TRUE(estimates.ok()) << estimates.status();
        ASSERT_FALSE(estimates->empty());
        const auto is = static_cast<double>(made.result->plan.predicted_peak_bytes);
        const double times = static_cast<double>((*estimates)[0].peak_bytes) / is;
        EXPECT_LT(times, 1.2);
        EXPECT_GT(times, 0.7);
      }
    }
  }
}

// What a device does in a step adds up, and so do tokens.
TEST(GridPlan, ReportsThroughputAndWhatTheStepConsistsOf) {
  const Model model = ResidualModel(4, 16, 16, 32);
  const Made made = Optimized(model, 4, {.degrees = {.tensor = 2}, .stages = 2});
  ASSERT_TRUE(made.result.ok()) << made.result.status();
  const CostModel cost(TestMachine(1, 4));
  const auto lowered = LowerForSimulation(cost.machine(), made.result->plan);
  ASSERT_TRUE(lowered.ok()) << lowered.status();
  const Explanation explanation =
      Explain(cost, lowered->mapped.graph, lowered->schedule, made.result->simulation);
  const StepShares& shares = explanation.shares;
  EXPECT_GT(shares.compute_us, 0);
  EXPECT_GT(shares.exposed_us(), 0);
  EXPECT_NEAR(shares.compute_us + shares.exposed_us() + shares.idle_us,
              made.result->simulation.step_us, 1e-6 * made.result->simulation.step_us);
  const Throughput throughput = ThroughputOf(made.result->plan, cost.machine());
  EXPECT_DOUBLE_EQ(throughput.samples_per_s, 16 / made.result->plan.predicted_step_us * 1e6 / 4);
  EXPECT_EQ(throughput.tokens_per_s, 0);
  EXPECT_GT(throughput.mfu, 0);
  EXPECT_LT(throughput.mfu, 1);
  EXPECT_THAT(made.report, HasSubstr("TFLOP/s of the model (MFU "));
}

// A plan of so many tasks that it is explained by one device of a node, and predicted by all of
// them: what explains it has the schedule's tasks, whoever made the plan.
TEST(GridPlan, IsExplainedByTheScheduleThatWasSimulated) {
  const Model model = ResidualModel(60, 1024, 16, 32);
  const CostModel cost(TestMachine(2, 64));
  const RuleSet rules = ExampleRules(model.graph);
  const RuleIndex index(rules);
  OptimizeOptions options;
  options.plan = kGrid;
  options.grid = GridRequest{.degrees = {.tensor = 16}};
  const auto made = Optimize(model, index, cost, options);
  ASSERT_TRUE(made.ok()) << made.status();
  const auto priced = PricePlan(made->plan, cost);
  ASSERT_TRUE(priced.ok()) << priced.status();
  EXPECT_EQ(priced->plan.predicted_step_us, made->plan.predicted_step_us);
  for (const OptimizeResult* result : {&*made, &*priced}) {
    ASSERT_LT(result->simulation.devices, 64);
    EXPECT_NEAR(result->simulation.step_us, result->plan.predicted_step_us,
                0.005 * result->plan.predicted_step_us);
    const auto lowered = LowerForSimulation(cost.machine(), result->plan);
    ASSERT_TRUE(lowered.ok()) << lowered.status();
    EXPECT_EQ(static_cast<size_t>(result->simulation.tasks.size()), lowered->schedule.tasks.size());
    EXPECT_TRUE(ReportOf(*result, rules, cost).ok());
  }
}

// Fewer heads of keys than devices: heads are split as far as they go, the sequence by the rest,
// and what follows is split as if heads were. The features of values, which the product before
// them splits, never are: each would take all scores.
TEST(GridPlan, SplitsAttentionOfFewKeyHeadsInItsSequence) {
  for (int64_t key_heads : {1, 2}) {
    SCOPED_TRACE(key_heads);
    const int64_t features = 4 * key_heads;
    Model model = TextModel(absl::Substitute(R"(
%0 = input "x" : f32[4,8,32]
%1 = weight "q" : f32[32,32]
%2 = weight "k" : f32[32,$0]
%3 = weight "v" : f32[32,$0]
%4 = weight "o" : f32[32,32]
%5 = matmul(%0, %1) : f32[4,8,32]
%6 = reshape(%5) {shape=[4,8,8,4]} : f32[4,8,8,4]
%7 = transpose(%6) {perm=[0,2,1,3]} : f32[4,8,8,4]
%8 = matmul(%0, %2) : f32[4,8,$0]
%9 = reshape(%8) {shape=[4,8,$1,4]} : f32[4,8,$1,4]
%10 = transpose(%9) {perm=[0,2,1,3]} : f32[4,$1,8,4]
%11 = matmul(%0, %3) : f32[4,8,$0]
%12 = reshape(%11) {shape=[4,8,$1,4]} : f32[4,8,$1,4]
%13 = transpose(%12) {perm=[0,2,1,3]} : f32[4,$1,8,4]
%14 = attention(%7, %10, %13) {scale=0.5,causal=1} : f32[4,8,8,4]  # heads
%15 = transpose(%14) {perm=[0,2,1,3]} : f32[4,8,8,4]
%16 = reshape(%15) {shape=[4,8,32]} : f32[4,8,32]
%17 = matmul(%16, %4) : f32[4,8,32]
output "y" = %17
)",
                                             features, key_heads));
    const Made made = Optimized(model, 4, {.degrees = {.tensor = 4}}, /*training=*/false);
    ASSERT_TRUE(made.result.ok()) << made.result.status();
    ExpectPlanHolds(made.result->plan, made.rules);
    const int64_t rest = 4 / key_heads;
    EXPECT_THAT(made.result->misfit,
                HasSubstr(absl::StrCat("--tensor=4 does not divide the ", key_heads, " of dim ")));
    EXPECT_THAT(made.result->misfit, HasSubstr(absl::StrCat("by ", rest, " in its sequence")));
    const Graph& graph = made.result->plan.graph;
    bool has_partials = false;
    for (int id = 0; id < graph.num_nodes(); ++id) {
      const TensorType& type = graph.node({id}).outputs[0];
      if (graph.node({id}).op.kind() == OpKind::kMatMul) has_partials |= type.partials == 4;
      if (graph.node({id}).op.kind() != OpKind::kAttention) continue;
      EXPECT_EQ(type.dims[1].degree, key_heads);
      EXPECT_EQ(type.dims[2].degree, rest);
      EXPECT_EQ(type.dims[3].degree, 1);
    }
    EXPECT_TRUE(has_partials) << "the product behind is split in its rows";
  }
}

// Tables of a rotation are copied over the batch and over heads, with the sequence between them:
// the rotation is split in all three, and nobody asks for more than a slice of a table.
TEST(GridPlan, SplitsARotationInBatchSequenceAndHeads) {
  const Model model = TextModel(R"(
%0 = input "x" : f32[4,8,32]
%1 = weight "q" : f32[32,32]
%2 = weight "o" : f32[32,32]
%3 = weight "cos" : f32[8,2]
%4 = weight "sin" : f32[8,2]
%5 = matmul(%0, %1) : f32[4,8,32]
%6 = reshape(%5) {shape=[4,8,8,4]} : f32[4,8,8,4]
%7 = transpose(%6) {perm=[0,2,1,3]} : f32[4,8,8,4]
%8 = rotary(%7, %3, %4) : f32[4,8,8,4]  # rotated
%9 = attention(%8, %8, %8) {scale=0.5,causal=1} : f32[4,8,8,4]
%10 = transpose(%9) {perm=[0,2,1,3]} : f32[4,8,8,4]
%11 = reshape(%10) {shape=[4,8,32]} : f32[4,8,32]
%12 = matmul(%11, %2) : f32[4,8,32]
output "y" = %12
)");
  const Made made =
      Optimized(model, 8, {.degrees = {.tensor = 2, .context = 2}}, /*training=*/false);
  ASSERT_TRUE(made.result.ok()) << made.result.status();
  ExpectPlanHolds(made.result->plan, made.rules);
  const Plan& plan = made.result->plan;
  bool has_outer_stride = false;
  for (int id = 0; id < plan.graph.num_nodes(); ++id) {
    const Node& node = plan.graph.node({id});
    has_outer_stride |= !plan.views[id].outer.empty();
    if (node.op.kind() != OpKind::kRotary) continue;
    EXPECT_EQ(node.outputs[0].ToString(), "f32[4:2,8:2,8:2,4]");
    for (const size_t table : {1, 2}) {
      const TensorRef input = node.inputs[table];
      EXPECT_EQ(plan.graph.type(input).ToString(), "f32[8:2,2] c4");
      EXPECT_EQ(DevicesOf(plan.views[input.node.value], plan.graph.type(input)),
                (std::vector<int64_t>{0, 1, 4, 5, 2, 3, 6, 7}));
    }
  }
  EXPECT_TRUE(has_outer_stride);
  const absl::StatusOr<Plan> read_back = [&]() -> absl::StatusOr<Plan> {
    const std::string path = testing::TempDir() + "/rotation.plan";
    const absl::Status saved = SavePlan(path, plan);
    if (!saved.ok()) return saved;
    return LoadPlan(path);
  }();
  ASSERT_TRUE(read_back.ok()) << read_back.status();
  EXPECT_EQ(read_back->views, plan.views);
}

TEST(GridPlan, SaysWhatADegreeDoesNotDivide) {
  const Model model = TextModel(R"(
%0 = input "x" : f32[16,8]
%1 = weight "a" : f32[8,24]
%2 = weight "b" : f32[24,8]
%3 = weight "c" : f32[8,6]
%4 = weight "d" : f32[6,8]
%5 = matmul(%0, %1) : f32[16,24]  # up
%6 = relu(%5) : f32[16,24]
%7 = matmul(%6, %2) : f32[16,8]
%8 = tanh(%7) : f32[16,8]
%9 = matmul(%8, %3) : f32[16,6]  # narrow
%10 = relu(%9) : f32[16,6]
%11 = matmul(%10, %4) : f32[16,8]
output "y" = %11
)");
  const Made made = Optimized(model, 8, {.degrees = {.tensor = 4}}, /*training=*/false);
  ASSERT_TRUE(made.result.ok()) << made.result.status();
  EXPECT_THAT(made.result->misfit, HasSubstr("--tensor=4 does not divide the 6 of dim n of "));
  EXPECT_THAT(made.result->misfit, HasSubstr("narrow"));
  ExpectPlanHolds(made.result->plan, made.rules);
}

}  // namespace
}  // namespace isomer
