// What devices run: waits follow from bytes, none is missing and none is idle.
#include "pcg/schedule/program/program.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "pcg/schedule/check/check.h"
#include "pcg/schedule/lowering/lower.h"
#include "pcg/schedule/program/queue_lives.h"
#include "tests/pcg/schedule/parallel_graphs.h"
#include "tests/pcg/schedule/pipeline_graphs.h"

namespace isomer {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

struct Compiled {
  Schedule schedule;
  MemoryPlan memory;
  Program program;

  absl::Status Check() const { return CheckProgram(schedule, memory, program); }
};

// `memory_queues`: with 1, bytes are shared as much as one queue allows.
Compiled CompiledFrom(Schedule schedule, int32_t num_queues = kMostQueues,
                      int32_t memory_queues = kMostQueues) {
  Compiled compiled{.schedule = std::move(schedule), .memory = {}, .program = {}};
  compiled.memory = PlanMemory(compiled.schedule, memory_queues);
  compiled.program = CompileProgram(compiled.schedule, compiled.memory, num_queues);
  return compiled;
}

// One device with `tasks`, whose buffers, of `bytes` each, lie at `offsets`.
Compiled ByHand(std::vector<Task> tasks, std::vector<int64_t> offsets, int64_t floats = 16) {
  Schedule schedule;
  schedule.options.num_devices = 1;
  for (size_t b = 0; b < offsets.size(); ++b) {
    schedule.buffers.push_back(
        {.role = BufferRole::kActivation, .tensor = {NodeId{0}, 0}, .box = {{0}, {floats}}});
  }
  schedule.programs.resize(1);
  for (size_t t = 0; t < tasks.size(); ++t) {
    tasks[t].devices = {0};
    schedule.programs[0].push_back(static_cast<int32_t>(t));
  }
  schedule.tasks = std::move(tasks);
  Compiled compiled{.schedule = std::move(schedule), .memory = {}, .program = {}};
  compiled.memory.offsets = std::move(offsets);
  compiled.memory.arena_bytes = {1 << 20};
  compiled.memory.host_bytes = {0};
  compiled.memory.scratch.resize(1);
  compiled.program = CompileProgram(compiled.schedule, compiled.memory, kMostQueues);
  return compiled;
}

Task TaskOf(TaskKind kind, BufferList reads, BufferList writes) {
  Task task{.kind = kind, .phase = Phase::kForward, .node = {0}};
  task.reads = std::move(reads);
  task.writes = std::move(writes);
  return task;
}

std::vector<int32_t> Waits(const Compiled& compiled, int place) {
  return compiled.program.devices[0][place].waits;
}

TEST(Program, WaitsForWhoWroteWhatIsRead) {
  const Compiled compiled =
      ByHand({TaskOf(TaskKind::kCompute, {}, {0}), TaskOf(TaskKind::kAllReduce, {0}, {0}),
              TaskOf(TaskKind::kCompute, {0}, {1})},
             {0, 64});
  EXPECT_THAT(Waits(compiled, 0), IsEmpty());
  EXPECT_EQ(Waits(compiled, 1), std::vector<int32_t>{0});
  EXPECT_EQ(Waits(compiled, 2), std::vector<int32_t>{1});
  EXPECT_TRUE(compiled.program.devices[0][0].signals);
  EXPECT_FALSE(compiled.program.devices[0][2].signals);
  EXPECT_EQ(compiled.Check(), absl::OkStatus());
}

TEST(Program, WaitsForWhoUsedTheBytesOfABufferThatIsDead) {
  // Buffer 2 lies where buffer 0 did, which a communication sends: no task depends on another.
  const Compiled compiled = ByHand(
      {TaskOf(TaskKind::kAllReduce, {0}, {1}), TaskOf(TaskKind::kCompute, {}, {2})}, {0, 64, 32});
  EXPECT_EQ(Waits(compiled, 1), std::vector<int32_t>{0});
  EXPECT_EQ(compiled.Check(), absl::OkStatus());
}

TEST(Program, DoesNotWaitForWhoOnlyReads) {
  const Compiled compiled = ByHand(
      {TaskOf(TaskKind::kAllReduce, {0}, {1}), TaskOf(TaskKind::kCompute, {0}, {2})}, {0, 64, 128});
  EXPECT_THAT(Waits(compiled, 1), IsEmpty());
  EXPECT_EQ(compiled.Check(), absl::OkStatus());
}

TEST(Program, LeavesOutWaitsThatFollow) {
  // Command 3 reads what 0 made, too; 2 has waited for 1, and 1 comes after 0 on its queue.
  const Compiled compiled =
      ByHand({TaskOf(TaskKind::kAllReduce, {}, {0}), TaskOf(TaskKind::kAllReduce, {}, {1}),
              TaskOf(TaskKind::kCompute, {1}, {2}), TaskOf(TaskKind::kCompute, {0, 1}, {3})},
             {0, 64, 128, 192});
  EXPECT_EQ(Waits(compiled, 2), std::vector<int32_t>{1});
  EXPECT_THAT(Waits(compiled, 3), IsEmpty());
  EXPECT_EQ(compiled.Check(), absl::OkStatus());
}

TEST(Program, RowsCountWithWhatLiesBetween) {
  Task task = TaskOf(TaskKind::kAllReduce, {0, 1}, {0, 1});
  task.segments = 2;
  // 40 bytes each, 64 apart; buffer 2 lies in the gap.
  const Compiled compiled =
      ByHand({task, TaskOf(TaskKind::kCompute, {}, {2})}, {0, 64, 40}, /*floats=*/4);
  EXPECT_EQ(compiled.program.devices[0][0].bytes.writes.size(), 1u);
  EXPECT_EQ(Waits(compiled, 1), std::vector<int32_t>{0});
}

TEST(Program, OneQueueNeedsNoWaits) {
  for (const ParallelCase& c : ParallelCases()) {
    const Compiled compiled = CompiledFrom(Lowered(c), 1, 1);
    for (const auto& commands : compiled.program.devices) {
      for (const Command& command : commands) EXPECT_THAT(command.waits, IsEmpty());
    }
    EXPECT_EQ(compiled.Check(), absl::OkStatus()) << c.name;
  }
}

TEST(Program, EveryTaskOfADeviceIsACommandButTheHostsAndViews) {
  for (const ParallelCase& c : ParallelCases()) {
    const Compiled compiled = CompiledFrom(Lowered(c));
    for (size_t d = 0; d < compiled.program.devices.size(); ++d) {
      std::vector<int32_t> expected, actual;
      for (int32_t t : compiled.schedule.programs[d]) {
        const Task& task = compiled.schedule.tasks[t];
        const bool of_host = task.kind == TaskKind::kLoad || task.kind == TaskKind::kFeed ||
                             task.kind == TaskKind::kUnload;
        if (!of_host && !task.is_view) expected.push_back(t);
      }
      for (const Command& one : compiled.program.devices[d]) actual.push_back(one.task);
      EXPECT_EQ(actual, expected) << c.name << " device " << d;
    }
  }
}

class ProgramOf : public testing::TestWithParam<ParallelCase> {};

TEST_P(ProgramOf, IsCheckedAndNoWaitIsIdle) {
  const ParallelCase& c = GetParam();
  const Graph graph = Parsed(c.parallel);
  for (UpdateMethod method :
       {UpdateMethod::kAllReduce, UpdateMethod::kSharded, UpdateMethod::kOwner}) {
    ScheduleOptions options = TrainingOptions(c.num_devices);
    options.update = {.optimizer = OptimizerKind::kAdam, .method = method};
    for (int32_t memory_queues : {1, kMostQueues}) {
      auto schedule = LowerGraph(graph, ViewsOf(graph, c.strides), options);
      ASSERT_TRUE(schedule.ok()) << schedule.status();
      Compiled compiled = CompiledFrom(*std::move(schedule), kMostQueues, memory_queues);
      ASSERT_EQ(compiled.Check(), absl::OkStatus());
      for (size_t d = 0; d < compiled.program.devices.size(); ++d) {
        for (Command& command : compiled.program.devices[d]) {
          const auto waits = command.waits;
          for (size_t w = 0; w < waits.size(); ++w) {
            command.waits.erase(command.waits.begin() + static_cast<int64_t>(w));
            EXPECT_THAT(std::string(compiled.Check().message()), HasSubstr("share bytes"))
                << "device " << d << ", task " << command.task;
            command.waits = waits;
          }
        }
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Examples, ProgramOf, testing::ValuesIn(ParallelCases()),
                         [](const auto& info) { return info.param.name; });

// Where the arena is laid for several queues, who waits does so for what it computes, not for room.
TEST(MemoryForQueues, NobodyWaitsForBytes) {
  int waits = 0, for_bytes = 0;
  for (const ParallelCase& c : ParallelCases()) {
    for (int32_t memory_queues : {1, kMostQueues}) {
      const Compiled compiled = CompiledFrom(Lowered(c), kMostQueues, memory_queues);
      ASSERT_EQ(CheckMemory(compiled.schedule, compiled.memory), absl::OkStatus());
      const std::vector<Task>& tasks = compiled.schedule.tasks;
      // What each task waits for because of its dependences, and theirs.
      std::vector<std::vector<bool>> after(tasks.size(), std::vector<bool>(tasks.size(), false));
      for (size_t t = 0; t < tasks.size(); ++t) {
        for (int32_t dep : tasks[t].deps) {
          for (size_t other = 0; other < t; ++other)
            after[t][other] = after[t][other] || after[dep][other];
          after[t][dep] = true;
        }
      }
      for (const std::vector<Command>& commands : compiled.program.devices) {
        for (const Command& command : commands) {
          for (int32_t other : command.waits) {
            ++waits;
            const bool depends = after[command.task][commands[other].task];
            for_bytes += memory_queues == 1 && !depends;
            EXPECT_TRUE(depends || memory_queues == 1) << c.name << " task " << command.task;
          }
        }
      }
    }
  }
  EXPECT_GT(waits, 100);
  EXPECT_GT(for_bytes, 0);
}

Task OfWeights(Task task) {
  task.of_weights = true;
  return task;
}

TEST(Program, DoesNotHaveWhatIsComputedNextWaitForGradients) {
  // A gradient of a weight is summed, and then a few numbers that the next computation needs.
  const Compiled compiled = ByHand(
      {TaskOf(TaskKind::kCompute, {}, {0}), OfWeights(TaskOf(TaskKind::kAllReduce, {0}, {0})),
       TaskOf(TaskKind::kCompute, {}, {1}), TaskOf(TaskKind::kAllReduce, {1}, {1}),
       TaskOf(TaskKind::kCompute, {1}, {2}), TaskOf(TaskKind::kUpdate, {0}, {3})},
      {0, 64, 128, 192});
  const std::vector<Command>& list = compiled.program.devices[0];
  EXPECT_EQ(list[1].queue, kWeightsQueue);
  EXPECT_EQ(list[3].queue, kCommunicationQueue);
  EXPECT_EQ(Waits(compiled, 3), std::vector<int32_t>{2});
  EXPECT_EQ(Waits(compiled, 4), std::vector<int32_t>{3});
  EXPECT_EQ(Waits(compiled, 5), std::vector<int32_t>{1});
  EXPECT_EQ(compiled.Check(), absl::OkStatus());
}

// A stage's own sum does not wait for a message that the stage before has not sent.
TEST(Program, HasQueuesForMessagesOfMicroBatches) {
  Task message = TaskOf(TaskKind::kSendReceive, {0}, {1});
  EXPECT_EQ(QueueOf(message, kMostQueues), kCommunicationQueue);
  message.moment = 2;
  EXPECT_EQ(QueueOf(message, kMostQueues), kForwardQueue);
  message.phase = Phase::kBackward;
  EXPECT_EQ(QueueOf(message, kMostQueues), kBackwardQueue);
  EXPECT_EQ(QueueOf(OfWeights(message), kMostQueues), kWeightsQueue);
  EXPECT_EQ(QueueOf(message, 1), kComputeQueue);
  Task sum = TaskOf(TaskKind::kAllReduce, {0}, {0});
  sum.moment = 2;
  EXPECT_EQ(QueueOf(sum, kMostQueues), kCommunicationQueue);
}

TEST(Program, HasAQueueForWhatIsDoneWithWeights) {
  int of_weights = 0, others = 0;
  for (const ParallelCase& c : ParallelCases()) {
    const Compiled compiled = CompiledFrom(Lowered(c));
    for (const Command& command : compiled.program.devices[0]) {
      const Task& task = compiled.schedule.tasks[command.task];
      if (!IsCommunication(task.kind)) {
        EXPECT_EQ(command.queue, kComputeQueue);
        continue;
      }
      // What is sent for an update is of gradients, or of weights.
      bool is_stored = true;
      for (BufferId id : task.writes) {
        const Buffer& buffer = compiled.schedule.buffers[id];
        is_stored = is_stored && std::any_of(compiled.schedule.parameters.begin(),
                                             compiled.schedule.parameters.end(),
                                             [&](const Schedule::HostTensor& parameter) {
                                               return parameter.tensor == buffer.tensor;
                                             });
      }
      EXPECT_EQ(command.queue, is_stored ? kWeightsQueue : kCommunicationQueue) << c.name;
      ++(is_stored ? of_weights : others);
    }
  }
  EXPECT_GT(of_weights, 5);
  EXPECT_GT(others, 20);
}

TEST(CommunicationLives, OfOneQueueDoNotWaitForThoseOfAnother) {
  // The computation waits for the second communication: of the first, on another queue, it knows
  // nothing.
  for (const bool of_weights : {false, true}) {
    std::vector<Task> tasks = {TaskOf(TaskKind::kAllReduce, {0}, {0}),
                               TaskOf(TaskKind::kAllReduce, {1}, {1}),
                               TaskOf(TaskKind::kCompute, {1}, {2})};
    tasks[0].of_weights = of_weights;
    tasks[2].deps = {1};
    const Schedule schedule = ByHand(std::move(tasks), {0, 64, 128}).schedule;
    const auto lives = CommunicationLives(schedule, 0);
    ASSERT_EQ(lives.size(), 2u);
    EXPECT_EQ(lives[0].second.last, of_weights ? 2 : 1);
    EXPECT_EQ(lives[1].second.last, 1);
  }
}

TEST(CommunicationLives, FromWhenTheyMayBeginToWhenTheyAreOver) {
  // Each computation waits for the communication two before it.
  std::vector<Task> tasks;
  for (int32_t i = 0; i < 8; ++i) {
    tasks.push_back(TaskOf(TaskKind::kAllReduce, {2 * i}, {2 * i}));
    tasks.push_back(TaskOf(TaskKind::kCompute, {2 * i}, {2 * i + 1}));
    tasks.back().deps = {2 * i};
  }
  Schedule schedule = ByHand(std::move(tasks), std::vector<int64_t>(16, 0)).schedule;
  const auto lives = CommunicationLives(schedule, 0);
  ASSERT_EQ(lives.size(), 8u);
  for (int32_t i = 0; i < 8; ++i) {
    EXPECT_EQ(lives[i].first, 2 * i);
    // Until the next task, which waits for it; from the fourth communication before.
    EXPECT_EQ(lives[i].second.last, 2 * i);
    EXPECT_EQ(lives[i].second.first, std::max(0, 2 * (i - static_cast<int32_t>(kMostAhead))));
  }
  // What nobody waits for is over when the fourth behind it is there, or at the end; what waits for
  // a computation begins behind it.
  for (Task& task : schedule.tasks) task.deps = {};
  schedule.tasks[14].deps = {13};
  const auto idle = CommunicationLives(schedule, 0);
  for (int32_t i = 0; i < 8; ++i) {
    const int32_t next = i + static_cast<int32_t>(kMostAhead);
    EXPECT_EQ(idle[i].second.last, next < 8 ? 2 * next - 1 : 15) << i;
  }
  EXPECT_EQ(idle[7].second.first, 14);
}

// ZeRO 2: of the gradients no more are whole at one time than are on their way, though no
// computation waits for their sums before the updates.
TEST(CommunicationLives, GradientsAreReleasedAsTheyAreReduced) {
  constexpr int kLayers = 16;
  constexpr int64_t kWeight = 64 * 64 * 4;
  const StagedMlp mlp{
      .layers = kLayers, .stages = 1, .data = 2, .micro_batches = 1, .batch = 4, .width = 64};
  const MappedGraph mapped = MakePipeline(mlp).mapped;
  const Graph& graph = mapped.graph;
  ScheduleOptions options = TrainingOptions(2);
  options.keep_gradients = false;
  options.update.bucket_bytes = 0;
  const auto bytes = [&](UpdateMethod method) {
    options.update.method = method;
    const auto schedule = LowerGraph(graph, mapped.views, options);
    EXPECT_TRUE(schedule.ok()) << schedule.status();
    EXPECT_EQ(CheckSchedule(graph, *schedule), absl::OkStatus());
    return PlanMemory(*schedule, kMostQueues).arena_bytes[0];
  };
  // Weights, halves of all gradients and of the updated weights, and whole gradients in flight.
  const int64_t sharded = bytes(UpdateMethod::kSharded);
  EXPECT_LE(sharded, (kLayers + kLayers + static_cast<int64_t>(kMostAhead) + 2) * kWeight);
  EXPECT_LE(sharded, bytes(UpdateMethod::kAllReduce));
}

// Two communications, the second after a computation.
Compiled Example() {
  return ByHand({TaskOf(TaskKind::kAllReduce, {0}, {0}), TaskOf(TaskKind::kCompute, {0}, {1}),
                 TaskOf(TaskKind::kAllReduce, {1}, {1}), TaskOf(TaskKind::kCompute, {1}, {2})},
                {0, 64, 128});
}

void ExpectRefused(const Compiled& compiled, const std::string& why) {
  EXPECT_THAT(std::string(compiled.Check().message()), HasSubstr(why));
}

TEST(CheckProgram, RefusesWhatIsNoProgramOfTheSchedule) {
  ASSERT_EQ(Example().Check(), absl::OkStatus());
  Compiled broken = Example();
  broken.program.devices.clear();
  ExpectRefused(broken, "0 devices for the 1");
  broken = Example();
  broken.program.num_queues = 0;
  ExpectRefused(broken, "no queue");
  broken = Example();
  broken.program.devices[0][0].task = 4;
  ExpectRefused(broken, "no task 4");
  broken = Example();
  broken.program.devices[0][0].task = -1;
  ExpectRefused(broken, "no task -1");
  broken = Example();
  broken.program.devices[0][1].task = 0;
  ExpectRefused(broken, "a second time");
  broken = Example();
  broken.program.devices[0].pop_back();
  ExpectRefused(broken, "task 3 is left out");
  broken = Example();
  broken.program.devices[0][0].queue = kMostQueues;
  ExpectRefused(broken, absl::StrCat("on queue ", kMostQueues));
  broken = Example();
  broken.schedule.programs[0].pop_back();
  ExpectRefused(broken, "not the device's");
}

TEST(CheckProgram, RefusesWaitsThatCannotEnd) {
  Compiled broken = Example();
  broken.program.devices[0][1].waits = {9};
  ExpectRefused(broken, "waits for no command");
  broken = Example();
  broken.program.devices[0][1].waits = {1};
  ExpectRefused(broken, "waits for no command");
  broken = Example();
  broken.program.devices[0][0].signals = false;
  ExpectRefused(broken, "does not signal");
  broken = Example();
  broken.program.devices[0][0].waits = {3};
  broken.program.devices[0][3].signals = true;
  ExpectRefused(broken, "never begins");
}

TEST(CheckProgram, RefusesOtherBytes) {
  Compiled broken = Example();
  broken.program.devices[0][1].bytes.writes[0].begin -= 64;
  ExpectRefused(broken, "touches other bytes");
  broken = Example();
  broken.program.devices[0][1].bytes.reads.clear();
  ExpectRefused(broken, "touches other bytes");
  broken = Example();
  broken.program.devices[0][1].bytes.reads[0].on_host = true;
  ExpectRefused(broken, "touches other bytes");
}

TEST(CheckProgram, RefusesAnotherOrder) {
  // The two communications exchanged, and nobody waits.
  Compiled broken = Example();
  std::swap(broken.program.devices[0][0], broken.program.devices[0][2]);
  for (Command& command : broken.program.devices[0]) command.waits.clear();
  EXPECT_FALSE(broken.Check().ok());
  // The computations, each of which still waits for its communication.
  broken = Example();
  std::vector<Command>& list = broken.program.devices[0];
  std::swap(list[1], list[3]);
  list[3].waits = {0};
  list[1].waits = {2};
  list[2].waits = {3};
  list[3].signals = true;
  ExpectRefused(broken, "never begins");
  // On one queue, without waits.
  Compiled single = Example();
  single.program = CompileProgram(single.schedule, single.memory, 1);
  ASSERT_EQ(single.Check(), absl::OkStatus());
  std::swap(single.program.devices[0][1], single.program.devices[0][2]);
  ExpectRefused(single, "behind which it belongs");
}

TEST(CheckProgram, AcceptsAnotherOrderOfWhatSharesNothing) {
  Compiled compiled =
      ByHand({TaskOf(TaskKind::kCompute, {}, {0}), TaskOf(TaskKind::kCompute, {}, {1})}, {0, 64});
  std::swap(compiled.program.devices[0][0], compiled.program.devices[0][1]);
  EXPECT_EQ(compiled.Check(), absl::OkStatus());
}

TEST(CheckProgram, RefusesDevicesThatMeetInUnlikeOrders) {
  for (const ParallelCase& c : ParallelCases()) {
    if (c.name != "ColumnParallelGathered") continue;
    Compiled compiled = CompiledFrom(Lowered(c));
    ASSERT_EQ(compiled.Check(), absl::OkStatus());
    // On device 0 alone, the places of its first two communications.
    std::vector<Command>& list = compiled.program.devices[0];
    std::vector<size_t> places;
    for (size_t i = 0; i < list.size(); ++i) {
      if (list[i].queue == kCommunicationQueue) places.push_back(i);
      list[i].waits.clear();
    }
    ASSERT_GE(places.size(), 2u);
    std::swap(list[places[0]], list[places[1]]);
    ExpectRefused(compiled, "never begins");
  }
}

TEST(CheckProgram, RefusesDevicesThatMeetOnUnlikeQueues) {
  for (const ParallelCase& c : ParallelCases()) {
    if (c.name != "ColumnParallelGathered") continue;
    Compiled compiled = CompiledFrom(Lowered(c));
    std::vector<Command>& list = compiled.program.devices[0];
    const auto last = std::find_if(list.rbegin(), list.rend(), [](const Command& command) {
      return command.queue == kCommunicationQueue;
    });
    ASSERT_NE(last, list.rend());
    last->queue = kWeightsQueue;
    ExpectRefused(compiled, "never begins");
  }
}

TEST(Program, ItsTextHasALineForEachCommand) {
  Graph graph;
  graph.AddInput("x", SequentialType({1}));
  const Compiled compiled = Example();
  const std::string text = compiled.program.ToString(graph, compiled.schedule);
  EXPECT_THAT(text, HasSubstr("device 0\n"));
  EXPECT_THAT(text, HasSubstr("0 communication: task 0 all_reduce"));
  EXPECT_THAT(text, HasSubstr("reads 0+64 writes 64+64 waits for 0 signals\n"));
}

}  // namespace
}  // namespace isomer
