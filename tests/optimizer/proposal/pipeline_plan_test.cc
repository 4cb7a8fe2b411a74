#include "optimizer/proposal/pipeline_plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <utility>

#include "optimizer/cost/timeline.h"
#include "optimizer/report/report.h"
#include "optimizer/search/optimizer.h"
#include "optimizer/sharding/stage_cut.h"
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

Made Optimized(const Model& model, int64_t devices, PipelineOptions options, bool training = true,
               int32_t steps_between_flushes = 1) {
  Made made{ExampleRules(model.graph), absl::UnknownError("not yet"), ""};
  const RuleIndex index(made.rules);
  const CostModel cost(TestMachine(1, devices));
  OptimizeOptions all;
  all.plan = kPipeline;
  all.pipeline = options;
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
        const Made made = Optimized(model, 4, {stages, micro_batches}, training);
        ASSERT_TRUE(made.result.ok()) << made.result.status();
        EXPECT_EQ(made.result->origin, kPipeline);
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
  const Made made = Optimized(model, 4, {4, 4});
  ASSERT_TRUE(made.result.ok()) << made.result.status();
  EXPECT_LT(made.result->plan.predicted_peak_bytes,
            made.result->baselines.at(kDataParallel).peak_bytes / 2);
}

// Two chunks a stage halve the bubble, steps that are not drained apart share one; no plan computes
// anything else for that.
TEST(PipelinePlan, ChunksAndStepsWithoutFlushesHaveLessOfABubble) {
  const Model model = ResidualModel(8, 64, 128, 512);
  const auto made = [&](int64_t chunks, int32_t steps) {
    const Made made = Optimized(model, 4, {4, 8, chunks}, /*training=*/true, steps);
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

TEST(PipelinePlan, RefusesWhatCannotBeCut) {
  const Model model = ResidualModel(2, 6, 16, 32);
  const auto refused = [&](PipelineOptions options) {
    return std::string(Optimized(model, 4, options).result.status().message());
  };
  EXPECT_THAT(refused({3, 2}), HasSubstr("--stages=3 does not divide 4 devices"));
  EXPECT_THAT(refused({2, 4}), HasSubstr("cannot be cut into 4 micro-batches on 2 devices"));
  EXPECT_THAT(refused({2, 0}), HasSubstr("--micro_batches=0"));
  EXPECT_THAT(refused({0, 2}), HasSubstr("--stages=0"));
  EXPECT_THAT(refused({4, 6, 2}),
              HasSubstr("--stages=4x2: --micro_batches=6 is no multiple of the 4 stages"));
  EXPECT_THAT(refused({4, 2, 0}), HasSubstr("--stages=4x0"));
}

}  // namespace
}  // namespace isomer
