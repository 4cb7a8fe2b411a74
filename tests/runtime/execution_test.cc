// However the queues of a device run, a step gives the same bits; and what a program forgets to
// wait for is seen.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

#include "pcg/schedule/lowering/lower.h"
#include "runtime/checking/check_executions.h"
#include "runtime/cpu/cpu_backend.h"
#include "runtime/device/memory_watch.h"
#include "runtime/execution/job.h"
#include "tests/from_environment.h"
#include "tests/pcg/schedule/parallel_graphs.h"
#include "tests/runtime/faulty_backend.h"

namespace isomer {
namespace {

using testing::HasSubstr;

// ISOMER_EXECUTION_SEEDS: adversarial runs of each case.
int64_t Seeds() { return FromEnvironment("ISOMER_EXECUTION_SEEDS", 5); }

class ExecutionTest : public testing::TestWithParam<ParallelCase> {};

TEST_P(ExecutionTest, AllGiveTheSameBits) {
  const ParallelCase& c = GetParam();
  Model model;
  model.graph = Parsed(c.sequential);
  const Graph parallel = Parsed(c.parallel);
  const auto backend = MakeCpuBackend();
  const auto weights = InitialWeights(model, 3);
  ASSERT_TRUE(weights.ok());
  for (UpdateMethod method :
       {UpdateMethod::kAllReduce, UpdateMethod::kSharded, UpdateMethod::kOwner}) {
    ScheduleOptions options = TrainingOptions(c.num_devices);
    options.update = {.optimizer = OptimizerKind::kAdam, .method = method};
    const auto schedule = LowerGraph(parallel, ViewsOf(parallel, c.strides), options);
    ASSERT_TRUE(schedule.ok()) << schedule.status();
    const auto check = CheckExecutions(parallel, *schedule, *weights, RandomInputs(model.graph, 5),
                                       0.1, Seeds(), backend.get());
    ASSERT_TRUE(check.ok()) << check.status();
    EXPECT_EQ(check->difference, "");
    EXPECT_EQ(check->seeds, Seeds());
    EXPECT_GT(check->tensors, static_cast<int64_t>(weights->size()));
  }
}

INSTANTIATE_TEST_SUITE_P(Examples, ExecutionTest, testing::ValuesIn(ParallelCases()),
                         [](const auto& info) { return info.param.name; });

// A kernel fails on one device, while others, and its own communication, wait for it.
TEST(Execution, AnErrorOfAKernelEndsAllDevices) {
  for (const ParallelCase& c : ParallelCases()) {
    if (c.name != "EmbeddingByVocabulary" && c.name != "TiedEmbedding") continue;
    Model model;
    model.graph = Parsed(c.sequential);
    HostValues inputs = RandomInputs(model.graph, 5);
    for (int id = 0; id < model.graph.num_nodes(); ++id) {
      const Node& node = model.graph.node(NodeId{id});
      if (node.op.kind() != OpKind::kInput || IsFloat(node.outputs[0].dtype)) continue;
      for (double& index : inputs[node.name].data) index = 1e6;
    }
    const Graph parallel = Parsed(c.parallel);
    const auto backend = MakeCpuBackend();
    for (ExecutionKind kind :
         {ExecutionKind::kInline, ExecutionKind::kThreaded, ExecutionKind::kAdversarial}) {
      auto job = Job::Start(parallel, Lowered(c), backend.get(), {.execution = {kind}});
      ASSERT_TRUE(job.ok()) << job.status();
      ASSERT_EQ((*job)->SetParameters(InitialWeights(model, 3).value()), absl::OkStatus());
      const std::string message((*job)->TrainStep(inputs, 0.1).message());
      EXPECT_THAT(message, HasSubstr("is not in [0, ")) << c.name << " " << ExecutionKindName(kind);
      EXPECT_THAT(message, testing::StartsWith("device ")) << ExecutionKindName(kind);
      // It is final.
      EXPECT_EQ(std::string((*job)->TrainStep(inputs, 0.1).message()), message);
    }
  }
}

// Runs the program of one device, as if its communications were with nobody.
std::unique_ptr<QueueRunner> Alone(const std::vector<Command>& program, ExecutionKind kind,
                                   uint64_t seed) {
  if (kind != ExecutionKind::kAdversarial) return MakeQueueRunner(program, kind);
  static constexpr int32_t kOne[] = {0};
  return MakeAdversarialRunner(
      {.devices = {program}}, [](int32_t) { return absl::MakeConstSpan(kOne); }, seed, 0);
}

// What a run of the program on `execution` does, by command, with nothing computed.
absl::Status RunEmpty(const Schedule& schedule, const MemoryPlan& memory,
                      const std::vector<Command>& program, int32_t device, uint64_t seed) {
  std::vector<char> arena(memory.arena_bytes[device]);
  MemoryWatch watch(schedule, memory, program, device, arena.data(), nullptr);
  const QueueWork work = {
      .selects = [](int32_t) { return true; },
      .run = [](int32_t) { return absl::OkStatus(); },
      .on_thread = [](const std::function<absl::Status()>& all) { return all(); },
      .abort = [](const absl::Status&) {},
      .before = [&](int32_t place, const QueueClock& over) { return watch.Before(place, over); },
      .after = [&](int32_t place) { watch.After(place); },
  };
  watch.Begin(work.selects);
  return Alone(program, ExecutionKind::kAdversarial, seed)->Run(work);
}

TEST(MemoryWatch, SeesEveryWaitThatIsMissing) {
  int waits = 0;
  for (const ParallelCase& c : ParallelCases()) {
    const Schedule schedule = Lowered(c);
    const MemoryPlan memory = PlanMemory(schedule);
    for (int32_t device = 0; device < c.num_devices; ++device) {
      std::vector<Command> program = CompileProgramOf(schedule, memory, kMostQueues, device);
      EXPECT_EQ(RunEmpty(schedule, memory, program, device, 1), absl::OkStatus());
      for (Command& command : program) {
        const auto kept = command.waits;
        if (kept.empty()) continue;
        command.waits.clear();
        ++waits;
        // Whatever the order in which they then run.
        for (uint64_t seed : {1, 2, 3}) {
          EXPECT_THAT(std::string(RunEmpty(schedule, memory, program, device, seed).message()),
                      HasSubstr("without waiting"))
              << c.name << " device " << device << " task " << command.task;
        }
        command.waits = kept;
      }
    }
  }
  EXPECT_GT(waits, 50);
}

TEST(MemoryWatch, DeadBytesAreNaN) {
  const ParallelCase c = ParallelCases()[0];
  const Schedule schedule = Lowered(c);
  const MemoryPlan memory = PlanMemory(schedule);
  const std::vector<Command> program = CompileProgramOf(schedule, memory, kMostQueues, 0);
  std::vector<char> arena(memory.arena_bytes[0], 0);
  MemoryWatch watch(schedule, memory, program, 0, arena.data(), nullptr);
  for (char byte : arena) EXPECT_EQ(byte, '\xFF');
  std::fill(arena.begin(), arena.end(), 0);
  watch.Begin([](int32_t) { return true; });
  for (size_t i = 0; i < program.size(); ++i) {
    for (const ByteRange& range : program[i].bytes.writes) {
      std::fill(arena.begin() + range.begin, arena.begin() + range.end, 0);
    }
    watch.After(static_cast<int32_t>(i));
  }
  // What is left of a step: parameters, states and what is unloaded.
  std::vector<bool> kept(arena.size(), false);
  const auto keep = [&](BufferId id) {
    const Buffer& buffer = schedule.buffers[id];
    if (buffer.device != 0) return;
    std::fill_n(kept.begin() + memory.offsets[id], buffer.bytes(), true);
  };
  for (size_t id = 0; id < schedule.buffers.size(); ++id) {
    const BufferRole role = schedule.buffers[id].role;
    if (role == BufferRole::kParameter || role == BufferRole::kState)
      keep(static_cast<BufferId>(id));
  }
  for (const Task& task : schedule.tasks) {
    if (task.kind != TaskKind::kUnload) continue;
    for (BufferId id : task.reads) keep(id);
  }
  int64_t dead = 0;
  for (size_t at = 0; at < arena.size(); ++at) {
    if (kept[at]) {
      EXPECT_EQ(arena[at], 0) << at;
    }
    dead += arena[at] == '\xFF';
  }
  EXPECT_GT(dead, 0);
}

// Two queues: places 0, 2 compute, 1, 3 communicate; 2 waits for 1 and 3 for 2.
std::vector<Command> FourCommands() {
  std::vector<Command> program(4);
  for (int32_t i = 0; i < 4; ++i) {
    program[i].task = i;
    program[i].queue = i % 2;
  }
  program[2].waits = {1};
  program[3].waits = {2};
  program[1].signals = program[2].signals = true;
  return program;
}

TEST(QueueRunner, WaitsAreKept) {
  const std::vector<Command> program = FourCommands();
  for (ExecutionKind kind : {ExecutionKind::kThreaded, ExecutionKind::kAdversarial}) {
    for (uint64_t seed = 0; seed < 50; ++seed) {
      std::atomic<int> clock = 0;
      std::array<int, 4> end = {};
      const auto runner = Alone(program, kind, seed);
      for (int round = 0; round < 3; ++round) {
        ASSERT_EQ(runner->Run({
                      .selects = [](int32_t) { return true; },
                      .run =
                          [&](int32_t place) {
                            end[place] = ++clock;
                            return absl::OkStatus();
                          },
                      .on_thread = [](const std::function<absl::Status()>& all) { return all(); },
                      .abort = [](const absl::Status&) {},
                      .computes = [](bool) {},
                      .before = [](int32_t, const QueueClock&) { return absl::OkStatus(); },
                      .after = [](int32_t) {},
                  }),
                  absl::OkStatus());
        EXPECT_LT(end[0], end[2]);
        EXPECT_LT(end[1], end[2]);
        EXPECT_LT(end[2], end[3]);
      }
    }
  }
}

TEST(QueueRunner, QueuesRunAtOneTime) {
  // Each waits until the other has begun.
  std::vector<Command> program(2);
  program[1].task = program[1].queue = 1;
  std::atomic<int> begun = 0;
  const QueueWork work = {
      .selects = [](int32_t) { return true; },
      .run =
          [&](int32_t) {
            ++begun;
            while (begun < 2) std::this_thread::yield();
            return absl::OkStatus();
          },
      .on_thread = [](const std::function<absl::Status()>& all) { return all(); },
      .abort = [](const absl::Status&) {},
      .computes = [](bool) {},
  };
  EXPECT_EQ(MakeQueueRunner(program, ExecutionKind::kThreaded)->Run(work), absl::OkStatus());
}

TEST(QueueRunner, AnErrorEndsBothQueues) {
  const std::vector<Command> program = FourCommands();
  for (ExecutionKind kind :
       {ExecutionKind::kInline, ExecutionKind::kThreaded, ExecutionKind::kAdversarial}) {
    for (int32_t failing = 0; failing < 4; ++failing) {
      std::atomic<bool> aborted = false;
      const absl::Status status =
          Alone(program, kind, /*seed=*/1)
              ->Run({
                  .selects = [](int32_t) { return true; },
                  .run =
                      [&](int32_t place) {
                        return place == failing ? absl::InternalError("broken") : absl::OkStatus();
                      },
                  .on_thread = [](const std::function<absl::Status()>& all) { return all(); },
                  .abort = [&](const absl::Status&) { aborted = true; },
                  .computes = [](bool) {},
                  .before = [](int32_t, const QueueClock&) { return absl::OkStatus(); },
                  .after = [](int32_t) {},
              });
      EXPECT_EQ(status.message(), "broken") << ExecutionKindName(kind) << " " << failing;
      EXPECT_EQ(aborted, kind == ExecutionKind::kThreaded);
    }
  }
}

TEST(QueueRunner, NamesWhatThereIs) {
  EXPECT_EQ(*ParseExecutionKind("threaded"), ExecutionKind::kThreaded);
  EXPECT_THAT(std::string(ParseExecutionKind("fast").status().message()),
              HasSubstr("inline, threaded and adversarial"));
}

}  // namespace
}  // namespace isomer
