// What is not kept for the backward pass is computed again, once, and lives for a shorter time.
#include "pcg/schedule/lowering/recomputation.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <unistd.h>

#include <algorithm>
#include <functional>

#include "absl/strings/str_cat.h"
#include "pcg/schedule/check/check.h"
#include "pcg/schedule/lowering/lower.h"
#include "pcg/schedule/memory/memory.h"
#include "tests/pcg/schedule/layers.h"
#include "tests/pcg/schedule/parallel_graphs.h"
#include "tests/pcg/schedule/pipeline_graphs.h"

namespace isomer {
namespace {

using testing::HasSubstr;

Schedule LoweredChain(const Graph& graph, const std::vector<NodeId>& recomputed) {
  ScheduleOptions options = TrainingOptions(1);
  options.keep_gradients = false;
  options.recomputed = recomputed;
  auto schedule = LowerGraph(graph, SequentialViews(graph), options);
  EXPECT_TRUE(schedule.ok()) << schedule.status();
  return schedule.ok() ? *std::move(schedule) : Schedule();
}

int CallsIn(const Schedule& schedule, Phase phase) {
  int calls = 0;
  for (const Task& task : schedule.tasks) {
    calls += task.kind == TaskKind::kCompute && task.phase == phase;
  }
  return calls;
}

TEST(Recomputation, ActivationsOfAChainAreThoseOfSegmentsAndOfOne) {
  constexpr int64_t kTensor = 64 * 8 * 4;
  const Graph graph = Parsed(TanhLayers(16));
  const MemoryPeak all = LargestPeak(LoweredChain(graph, {}));
  // x, t, a tensor for each of 16 layers (the gradient of tanh needs its result alone), the loss.
  EXPECT_EQ(all.of(MemoryCategory::kActivations), 18 * kTensor + 4);
  // Segments of four layers: every fourth result of a tanh is kept.
  std::vector<NodeId> recomputed;
  for (NodeId id : ComputedNodes(graph)) {
    const bool kept = graph.node(id).op.kind() == OpKind::kTanh && (id.value - 4) / 3 % 4 == 3;
    if (!kept) recomputed.push_back(id);
  }
  const Schedule schedule = LoweredChain(graph, recomputed);
  ASSERT_EQ(CheckSchedule(graph, schedule), absl::OkStatus());
  // When the last segment has been done again: x, the ends of the other three, and three of its own
  // layers (the last is its end); t died with the loss.
  const MemoryPeak some = LargestPeak(schedule);
  EXPECT_EQ(some.of(MemoryCategory::kActivations), 7 * kTensor + 4);
  EXPECT_LT(some.bytes, all.bytes);
  // Every layer but the ends of segments is done again, the product and the tanh; of ends neither.
  EXPECT_EQ(CallsIn(schedule, Phase::kBackward), 2 * 12);
  EXPECT_EQ(CallsIn(schedule, Phase::kForward), 2 * 16 + 1);
}

TEST(Recomputation, OfEverythingDoesNothingTwiceAgain) {
  const Graph graph = Parsed(TanhLayers(6));
  const Schedule schedule = LoweredChain(graph, ComputedNodes(graph));
  EXPECT_EQ(CheckSchedule(graph, schedule), absl::OkStatus()) << schedule.ToString(graph);
  EXPECT_EQ(CallsIn(schedule, Phase::kBackward), 12);
}

TEST(Recomputation, InferenceHasNoneOfIt) {
  const Graph graph = Parsed(TanhLayers(2));
  ScheduleOptions options = TrainingOptions(1);
  options.training = false;
  options.recomputed = ComputedNodes(graph);
  const auto schedule = LowerGraph(graph, SequentialViews(graph), options);
  ASSERT_TRUE(schedule.ok());
  EXPECT_EQ(CallsIn(*schedule, Phase::kBackward), 0);
}

TEST(Recomputation, RepeatsCommunicationAndPassesTheChecker) {
  for (const ParallelCase& c : ParallelCases()) {
    SCOPED_TRACE(c.name);
    const Graph graph = Parsed(c.parallel);
    ScheduleOptions options = TrainingOptions(c.num_devices);
    options.recomputed = ComputedNodes(graph);
    const auto schedule = LowerGraph(graph, ViewsOf(graph, c.strides), options);
    ASSERT_TRUE(schedule.ok()) << schedule.status();
    EXPECT_EQ(CheckSchedule(graph, *schedule), absl::OkStatus()) << schedule->ToString(graph);
    if (c.name != "SamplesToColumnsAndBack") continue;
    int repeated = 0;
    for (const Task& task : schedule->tasks) {
      repeated += task.kind == TaskKind::kAllToAll && task.phase == Phase::kBackward;
    }
    EXPECT_EQ(repeated, 4);  // two, and the gradients of two
  }
}

TEST(Recomputation, StaysWithinStagesAndMicroBatches) {
  for (int64_t stages : {1, 2, 4}) {
    for (int64_t data : {1, 2}) {
      // Two layers a stage at least: with one, its own gradients need all that it computes.
      const StagedMlp pipeline{
          .layers = 8, .stages = stages, .data = data, .micro_batches = 4, .shortcut = true};
      SCOPED_TRACE(pipeline.Name());
      const PipelineGraphs graphs = MakePipeline(pipeline);
      const Graph& graph = graphs.mapped.graph;
      const auto lowered = [&](const std::vector<NodeId>& recomputed) {
        return LoweredPipeline(pipeline, graphs.mapped, PipelineOrder::kOneForwardOneBackward,
                               recomputed);
      };
      EXPECT_EQ(CheckSchedule(graph, lowered(ComputedNodes(graph))), absl::OkStatus());
      std::vector<NodeId> within;  // of layers, of which the sums are kept
      for (NodeId id : ComputedNodes(graph)) {
        const OpKind kind = graph.node(id).op.kind();
        if (kind == OpKind::kMatMul || kind == OpKind::kTanh) within.push_back(id);
      }
      const Schedule schedule = lowered(within);
      EXPECT_EQ(CheckSchedule(graph, schedule), absl::OkStatus()) << schedule.ToString(graph);
      EXPECT_GT(CallsIn(schedule, Phase::kBackward), 0);
      EXPECT_LT(PeakBytes(schedule), PeakBytes(lowered({})));
    }
  }
}

TEST(Recomputation, PlansKeepItsNodes) {
  Plan plan;
  plan.graph = Parsed(TanhLayers(3));
  plan.model.graph = plan.graph;
  plan.model.loss = "loss";
  plan.views = SequentialViews(plan.graph);
  const uint64_t seal = SealOf(plan);
  plan.recomputed = {{3}, {4}, {6}};
  EXPECT_NE(SealOf(plan), seal);
  const std::string path = absl::StrCat(testing::TempDir(), "/recomputed_", getpid(), ".plan");
  ASSERT_EQ(SavePlan(path, plan), absl::OkStatus());
  const auto loaded = LoadPlan(path);
  ASSERT_TRUE(loaded.ok()) << loaded.status();
  EXPECT_EQ(loaded->recomputed, plan.recomputed);
  // In bfloat16 nodes have other numbers, and casts belong to what they cast.
  plan.precision = DataType::kBFloat16;
  const auto lowered = LowerPlan(plan);
  ASSERT_TRUE(lowered.ok()) << lowered.status();
  EXPECT_EQ(CheckSchedule(lowered->mapped.graph, lowered->schedule), absl::OkStatus());
  // The second product is not needed for its tanh's gradient.
  EXPECT_EQ(CallsIn(lowered->schedule, Phase::kBackward), 2);
  plan.recomputed = {{4}, {3}};
  ASSERT_EQ(SavePlan(path, plan), absl::OkStatus());
  EXPECT_THAT(std::string(LoadPlan(path).status().message()), HasSubstr("recomputed: node %3"));
}

std::string Verdict(const std::function<void(Schedule*)>& change) {
  const Graph graph = Parsed(TanhLayers(4));
  Schedule schedule = LoweredChain(graph, ComputedNodes(graph));
  change(&schedule);
  return std::string(CheckSchedule(graph, schedule).message());
}

Task* FirstRepeat(Schedule* schedule, int skip = 0) {
  for (Task& task : schedule->tasks) {
    if (task.kind == TaskKind::kCompute && task.phase == Phase::kBackward && skip-- == 0) {
      return &task;
    }
  }
  return nullptr;
}

TEST(BrokenRecomputation, OfAnotherLayersInput) {
  EXPECT_THAT(Verdict([](Schedule* schedule) {
                // The second layer's product again, of what the graph was fed.
                const Task& first = *FirstRepeat(schedule);
                Task& repeat = *FirstRepeat(schedule, 2);
                repeat.reads[0] = first.reads[0];
                repeat.deps.insert(repeat.deps.end(), first.deps.begin(), first.deps.end());
                std::sort(repeat.deps.begin(), repeat.deps.end());
              }),
              HasSubstr("operand 0 is not what buffer"));
}

TEST(BrokenRecomputation, LeftOut) {
  EXPECT_THAT(Verdict([](Schedule* schedule) {
                const Task* repeat = FirstRepeat(schedule, 1);
                std::erase(schedule->programs[0],
                           static_cast<int32_t>(repeat - schedule->tasks.data()));
              }),
              HasSubstr("not in the programs"));
}

TEST(BrokenRecomputation, FilledByTheHost) {
  EXPECT_THAT(Verdict([](Schedule* schedule) {
                Task* repeat = FirstRepeat(schedule);
                repeat->kind = TaskKind::kFeed;
                repeat->reads.clear();
              }),
              HasSubstr("has the host set a tensor again"));
}

}  // namespace
}  // namespace isomer
