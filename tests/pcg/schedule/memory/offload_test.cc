// What lies in the host's memory until the backward pass is copied there once and back once.
#include "pcg/schedule/memory/offload.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <unistd.h>

#include <algorithm>
#include <functional>
#include <set>

#include "absl/strings/str_cat.h"
#include "pcg/schedule/check/check.h"
#include "pcg/schedule/lowering/lower.h"
#include "pcg/schedule/memory/memory.h"
#include "pcg/schedule/program/program.h"
#include "tests/pcg/schedule/layers.h"
#include "tests/pcg/schedule/parallel_graphs.h"
#include "tests/pcg/schedule/pipeline_graphs.h"

namespace isomer {
namespace {

using testing::HasSubstr;

constexpr int64_t kTensor = 64 * 8 * 4;

Schedule LoweredLayers(const Graph& graph, const std::vector<NodeId>& offloaded,
                       const std::vector<NodeId>& recomputed = {}) {
  ScheduleOptions options = TrainingOptions(1);
  options.keep_gradients = false;
  options.offloaded = offloaded;
  options.recomputed = recomputed;
  auto schedule = LowerGraph(graph, SequentialViews(graph), options);
  EXPECT_TRUE(schedule.ok()) << schedule.status();
  return schedule.ok() ? *std::move(schedule) : Schedule();
}

int TasksOfKind(const Schedule& schedule, TaskKind kind) {
  return static_cast<int>(std::count_if(schedule.tasks.begin(), schedule.tasks.end(),
                                        [kind](const Task& task) { return task.kind == kind; }));
}

TEST(Offload, OnlyWhatIsInFlightStaysOnTheDevice) {
  const Graph graph = Parsed(TanhLayers(32));
  const Schedule all = LoweredLayers(graph, {});
  const Schedule some = LoweredLayers(graph, ComputedNodes(graph));
  ASSERT_EQ(CheckSchedule(graph, some), absl::OkStatus()) << some.ToString(graph);
  // Of 32 results, and of products none is kept: all but the last ones, which would be fetched as
  // soon as they were gone.
  const int offloads = TasksOfKind(some, TaskKind::kOffload);
  EXPECT_EQ(offloads, 32 - static_cast<int>(kCopiesAhead));
  EXPECT_EQ(TasksOfKind(some, TaskKind::kFetch), offloads);
  EXPECT_EQ(TasksOfKind(all, TaskKind::kOffload), 0);
  // On the device: x, t, the loss, those that are on their way, and the one at hand.
  const int64_t before = LargestPeak(all).of(MemoryCategory::kActivations);
  const int64_t after = LargestPeak(some).of(MemoryCategory::kActivations);
  EXPECT_EQ(before, 34 * kTensor + 4);
  EXPECT_LE(after, static_cast<int64_t>(2 + 2 * kCopiesAhead) * kTensor + 4);
  // On the host: all of them when the forward pass ends.
  const MemoryPlan memory = PlanMemory(some, kMostQueues);
  EXPECT_EQ(memory.host_bytes[0], offloads * kTensor);
  EXPECT_EQ(CheckMemory(some, memory), absl::OkStatus());
  EXPECT_LT(memory.arena_bytes[0], PlanMemory(all, kMostQueues).arena_bytes[0] - 20 * kTensor);
}

TEST(Offload, CopiesRunOnQueuesOfTheirOwnAndWaitForBytesAlone) {
  const Graph graph = Parsed(TanhLayers(16));
  const Schedule schedule = LoweredLayers(graph, ComputedNodes(graph));
  const MemoryPlan memory = PlanMemory(schedule, kMostQueues);
  const std::vector<Command> program = CompileProgramOf(schedule, memory, kMostQueues, 0);
  int copies = 0;
  for (const Command& command : program) {
    const TaskKind kind = schedule.tasks[command.task].kind;
    EXPECT_EQ(command.queue == kOffloadQueue, kind == TaskKind::kOffload);
    EXPECT_EQ(command.queue == kFetchQueue, kind == TaskKind::kFetch);
    if (!IsHostCopy(kind)) continue;
    ++copies;
    // One end is on the host, the other is not.
    ASSERT_EQ(command.bytes.reads.size(), 1u);
    ASSERT_EQ(command.bytes.writes.size(), 1u);
    EXPECT_EQ(command.bytes.reads[0].on_host, kind == TaskKind::kFetch);
    EXPECT_EQ(command.bytes.writes[0].on_host, kind == TaskKind::kOffload);
    if (kind != TaskKind::kOffload) continue;
    // As soon as the value is there: it waits for who made it, and has no place behind others.
    ASSERT_EQ(command.waits.size(), 1u);
    const Task& made = schedule.tasks[program[command.waits[0]].task];
    EXPECT_EQ(made.writes[0], schedule.tasks[command.task].reads[0]);
  }
  EXPECT_EQ(copies, 2 * (16 - static_cast<int>(kCopiesAhead)));
}

// The ends of segments lie on the host, all else is computed again from there.
TEST(Offload, OfWhatRecomputationBeginsWith) {
  const Graph graph = Parsed(TanhLayers(32));
  std::vector<NodeId> ends, within;
  for (NodeId id : ComputedNodes(graph)) {
    const bool is_end = graph.node(id).op.kind() == OpKind::kTanh && (id.value - 4) / 3 % 2 == 1;
    (is_end ? ends : within).push_back(id);
  }
  const Schedule recomputed = LoweredLayers(graph, {}, within);
  const Schedule both = LoweredLayers(graph, ends, within);
  ASSERT_EQ(CheckSchedule(graph, both), absl::OkStatus()) << both.ToString(graph);
  EXPECT_GT(TasksOfKind(both, TaskKind::kFetch), 8);
  EXPECT_EQ(TasksOfKind(both, TaskKind::kCompute), TasksOfKind(recomputed, TaskKind::kCompute));
  EXPECT_LT(PeakBytes(both), PeakBytes(recomputed) - 4 * kTensor);
}

TEST(Offload, OnAllExamplesOfParallelGraphs) {
  for (const ParallelCase& c : ParallelCases()) {
    SCOPED_TRACE(c.name);
    const Graph graph = Parsed(c.parallel);
    ScheduleOptions options = TrainingOptions(c.num_devices);
    options.offloaded = ComputedNodes(graph);
    const auto schedule = LowerGraph(graph, ViewsOf(graph, c.strides), options);
    ASSERT_TRUE(schedule.ok()) << schedule.status();
    EXPECT_EQ(CheckSchedule(graph, *schedule), absl::OkStatus()) << schedule->ToString(graph);
  }
}

TEST(Offload, OfPipelinesInAllOrders) {
  int copies = 0;
  for (int64_t stages : {1, 2, 4}) {
    for (int64_t chunks : {1, 2}) {
      if (stages == 1 && chunks == 2) continue;
      for (int32_t in_flight : {0, static_cast<int32_t>(2 * stages)}) {
        if (chunks == 2 && in_flight > 0) continue;
        const StagedMlp pipeline{.layers = 16,
                                 .stages = stages,
                                 .data = 2,
                                 .micro_batches = 4,
                                 .shortcut = true,
                                 .chunks = chunks};
        SCOPED_TRACE(absl::StrCat(pipeline.Name(), " ", in_flight));
        const PipelineGraphs graphs = MakePipeline(pipeline);
        ScheduleOptions options = TrainingOptions(pipeline.devices());
        options.zero_bubble.most_in_flight = in_flight;
        const auto kept = LowerGraph(graphs.mapped.graph, graphs.mapped.views, options);
        options.offloaded = ComputedNodes(graphs.mapped.graph);
        const auto schedule = LowerGraph(graphs.mapped.graph, graphs.mapped.views, options);
        ASSERT_TRUE(schedule.ok()) << schedule.status();
        EXPECT_EQ(CheckSchedule(graphs.mapped.graph, *schedule), absl::OkStatus());
        EXPECT_LE(PeakBytes(*schedule), PeakBytes(*kept));
        copies += TasksOfKind(*schedule, TaskKind::kOffload);
      }
    }
  }
  EXPECT_GT(copies, 100);
}

TEST(Offload, PlansKeepItsNodes) {
  Plan plan;
  plan.graph = Parsed(TanhLayers(8));
  plan.model.graph = plan.graph;
  plan.model.loss = "loss";
  plan.views = SequentialViews(plan.graph);
  const uint64_t seal = SealOf(plan);
  plan.offloaded = {{4}, {7}};
  EXPECT_NE(SealOf(plan), seal);
  const std::string path = absl::StrCat(testing::TempDir(), "/offloaded_", getpid(), ".plan");
  ASSERT_EQ(SavePlan(path, plan), absl::OkStatus());
  const auto loaded = LoadPlan(path);
  ASSERT_TRUE(loaded.ok()) << loaded.status();
  EXPECT_EQ(loaded->offloaded, plan.offloaded);
  // In bfloat16 nodes have other numbers, and casts belong to what they cast.
  plan.offloaded = ComputedNodes(plan.graph);
  plan.precision = DataType::kBFloat16;
  const auto lowered = LowerPlan(plan);
  ASSERT_TRUE(lowered.ok()) << lowered.status();
  EXPECT_EQ(CheckSchedule(lowered->mapped.graph, lowered->schedule), absl::OkStatus());
  EXPECT_GT(TasksOfKind(lowered->schedule, TaskKind::kOffload), 2);
  plan.precision = DataType::kFloat32;
  plan.offloaded = {{4}, {3}};
  ASSERT_EQ(SavePlan(path, plan), absl::OkStatus());
  EXPECT_THAT(std::string(LoadPlan(path).status().message()), HasSubstr("offloaded: node %3"));
}

TEST(Offload, NotOfStepsWithoutFlushes) {
  const StagedMlp pipeline{.layers = 8, .stages = 2, .micro_batches = 4};
  const MappedGraph mapped = MakePipeline(pipeline).mapped;
  ScheduleOptions options = TrainingOptions(pipeline.devices());
  options.keep_gradients = false;
  options.update.steps_between_flushes = 2;
  EXPECT_TRUE(LowerGraph(mapped.graph, mapped.views, options).ok());
  options.offloaded = ComputedNodes(mapped.graph);
  EXPECT_THAT(std::string(LowerGraph(mapped.graph, mapped.views, options).status().message()),
              HasSubstr("values of several steps between flushes stay on the device"));
}

std::string VerdictOf(const std::function<void(Schedule*)>& change) {
  const Graph graph = Parsed(TanhLayers(12));
  Schedule schedule = LoweredLayers(graph, ComputedNodes(graph));
  EXPECT_EQ(CheckSchedule(graph, schedule), absl::OkStatus());
  change(&schedule);
  return std::string(CheckSchedule(graph, schedule).message());
}

// The task of this kind, of those that there are.
int32_t PlaceOf(const Schedule& schedule, TaskKind kind, int skip = 0) {
  for (size_t t = 0; t < schedule.tasks.size(); ++t) {
    if (schedule.tasks[t].kind == kind && skip-- == 0) return static_cast<int32_t>(t);
  }
  ADD_FAILURE() << "no task of the kind " << TaskKindName(kind);
  return 0;
}
Task& TaskOf(Schedule* schedule, TaskKind kind, int skip = 0) {
  return schedule->tasks[PlaceOf(*schedule, kind, skip)];
}

// Every task waits for all before it.
void WaitForAll(Schedule* schedule) {
  for (size_t t = 0; t < schedule->tasks.size(); ++t) {
    schedule->tasks[t].deps.clear();
    for (size_t before = 0; before < t; ++before) {
      schedule->tasks[t].deps.push_back(static_cast<int32_t>(before));
    }
  }
}

TEST(BrokenOffload, FetchesAnotherValue) {
  EXPECT_THAT(VerdictOf([](Schedule* schedule) {
                TaskOf(schedule, TaskKind::kFetch).reads =
                    TaskOf(schedule, TaskKind::kFetch, 1).reads;
                WaitForAll(schedule);
              }),
              HasSubstr("copies to a buffer for something else"));
}

TEST(BrokenOffload, OffloadsAnotherValue) {
  EXPECT_THAT(VerdictOf([](Schedule* schedule) {
                TaskOf(schedule, TaskKind::kOffload).reads =
                    TaskOf(schedule, TaskKind::kOffload, 1).reads;
                WaitForAll(schedule);
              }),
              HasSubstr("copies to a buffer for something else"));
}

TEST(BrokenOffload, IsFetchedBeforeItIsThere) {
  EXPECT_THAT(
      VerdictOf([](Schedule* schedule) {
        std::vector<int32_t>& program = schedule->programs[0];
        const auto fetch =
            std::find(program.begin(), program.end(), PlaceOf(*schedule, TaskKind::kFetch));
        const auto offload = std::find(
            program.begin(), program.end(),
            PlaceOf(*schedule, TaskKind::kOffload, TasksOfKind(*schedule, TaskKind::kOffload) - 1));
        std::rotate(offload, fetch, fetch + 1);
      }),
      HasSubstr("before it is written"));
}

TEST(BrokenOffload, IsReadInTheDevicesMemoryAsIfItWereStillThere) {
  // The bytes of what was offloaded are another's by then: the value would live, and the memory
  // plan keep it. As a schedule this is right, and a program with its memory as planned is not.
  const Graph graph = Parsed(TanhLayers(12));
  Schedule schedule = LoweredLayers(graph, ComputedNodes(graph));
  const MemoryPlan planned = PlanMemory(schedule);
  const BufferId offloaded = TaskOf(&schedule, TaskKind::kOffload).reads[0];
  const Task& fetch =
      TaskOf(&schedule, TaskKind::kFetch, TasksOfKind(schedule, TaskKind::kFetch) - 1);
  for (Task& task : schedule.tasks) {
    std::replace(task.reads.begin(), task.reads.end(), fetch.writes[0], offloaded);
  }
  EXPECT_THAT(std::string(CheckMemory(schedule, planned).message()),
              HasSubstr("reuses memory that is live"));
}

TEST(BrokenOffload, NobodyComputesWithWhatIsOnTheHost) {
  EXPECT_THAT(VerdictOf([](Schedule* schedule) {
                const Task fetch = TaskOf(schedule, TaskKind::kFetch);
                for (Task& task : schedule->tasks) {
                  std::replace(task.reads.begin(), task.reads.end(), fetch.writes[0],
                               fetch.reads[0]);
                }
                WaitForAll(schedule);
              }),
              HasSubstr("schedule:"));
}

TEST(BrokenOffload, DoesNotWaitForTheCopy) {
  EXPECT_THAT(
      VerdictOf([](Schedule* schedule) { TaskOf(schedule, TaskKind::kFetch).deps.clear(); }),
      HasSubstr("without waiting for task"));
}

TEST(BrokenOffload, OfAGradient) {
  EXPECT_THAT(VerdictOf([](Schedule* schedule) {
                Task& offload = TaskOf(schedule, TaskKind::kOffload);
                schedule->buffers[offload.reads[0]].role = BufferRole::kGradient;
              }),
              HasSubstr("schedule:"));
}

TEST(BrokenOffload, StaysOnTheDevice) {
  EXPECT_THAT(VerdictOf([](Schedule* schedule) {
                Task& offload = TaskOf(schedule, TaskKind::kOffload);
                schedule->buffers[offload.writes[0]].role = BufferRole::kActivation;
              }),
              HasSubstr("schedule:"));
}

}  // namespace
}  // namespace isomer
