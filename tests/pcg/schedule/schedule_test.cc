#include "pcg/schedule/schedule.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <string>
#include <vector>

#include "pcg/ir/operator_facts.h"
#include "pcg/schedule/check/check.h"
#include "pcg/schedule/lowering/lower.h"
#include "pcg/schedule/memory/memory.h"
#include "tests/pcg/schedule/parallel_graphs.h"

namespace isomer {
namespace {

using testing::HasSubstr;

class ScheduleTest : public testing::TestWithParam<ParallelCase> {};

TEST_P(ScheduleTest, LowersToTheCollectivesPromised) {
  const Schedule schedule = Lowered(GetParam());
  std::map<TaskKind, int> found;
  for (const Task& task : schedule.tasks) {
    if (IsCommunication(task.kind)) ++found[task.kind];
  }
  if (GetParam().communications.empty()) return;
  EXPECT_EQ(found, GetParam().communications) << schedule.ToString(Parsed(GetParam().parallel));
}

TEST_P(ScheduleTest, PassesTheChecker) {
  EXPECT_EQ(CheckSchedule(Parsed(GetParam().parallel), Lowered(GetParam())), absl::OkStatus());
}

TEST_P(ScheduleTest, DependenciesComeEarlier) {
  const Schedule schedule = Lowered(GetParam());
  for (size_t t = 0; t < schedule.tasks.size(); ++t) {
    for (int32_t dep : schedule.tasks[t].deps) EXPECT_LT(dep, static_cast<int32_t>(t));
  }
}

TEST_P(ScheduleTest, ArenaHoldsThePeakAndIsNotMuchLarger) {
  const Schedule schedule = Lowered(GetParam());
  const MemoryPlan plan = PlanMemory(schedule);
  const std::vector<int64_t> peaks = PeakBytesPerDevice(schedule);
  for (size_t d = 0; d < peaks.size(); ++d) {
    EXPECT_GE(plan.arena_bytes[d], peaks[d]);
    // Buffers are rounded up to 64 bytes; these are small.
    EXPECT_LE(plan.arena_bytes[d], 2 * peaks[d] + 2048);
  }
}

// Swaps neighbours in the program of one device wherever one depends on the other, or both are
// communications: the checker must refuse every such order.
TEST_P(ScheduleTest, CheckerRefusesTasksThatChangePlaces) {
  const Graph graph = Parsed(GetParam().parallel);
  const Schedule original = Lowered(GetParam());
  int mutants = 0;
  for (size_t d = 0; d < original.programs.size(); ++d) {
    for (size_t i = 0; i + 1 < original.programs[d].size(); ++i) {
      const int32_t a = original.programs[d][i], b = original.programs[d][i + 1];
      const Task &first = original.tasks[a], &second = original.tasks[b];
      const bool depends =
          std::find(second.deps.begin(), second.deps.end(), a) != second.deps.end();
      const bool reads = std::any_of(second.reads.begin(), second.reads.end(), [&](BufferId id) {
        return id != kNoBuffer &&
               std::find(first.writes.begin(), first.writes.end(), id) != first.writes.end();
      });
      const bool both_meet = IsCommunication(first.kind) && first.devices == second.devices;
      if (!(depends && reads) && !both_meet) continue;
      Schedule mutant = original;
      std::swap(mutant.programs[d][i], mutant.programs[d][i + 1]);
      EXPECT_FALSE(CheckSchedule(graph, mutant).ok())
          << "device " << d << ": tasks " << a << " and " << b;
      ++mutants;
    }
  }
  EXPECT_GT(mutants, 0);
}

// Leaves out one task at a time: somebody then reads what nobody wrote, waits for ever, a share of
// a gradient is lost or a parameter is not updated. Only reads by the host go unnoticed.
TEST_P(ScheduleTest, CheckerRefusesAnyMissingTask) {
  const Graph graph = Parsed(GetParam().parallel);
  const Schedule original = Lowered(GetParam());
  for (size_t t = 0; t < original.tasks.size(); ++t) {
    if (original.tasks[t].kind == TaskKind::kUnload) continue;
    Schedule mutant = original;
    for (int32_t device : original.tasks[t].devices) {
      std::erase(mutant.programs[device], static_cast<int32_t>(t));
    }
    EXPECT_FALSE(CheckSchedule(graph, mutant).ok()) << "task " << t;
  }
}

INSTANTIATE_TEST_SUITE_P(Parallel, ScheduleTest, testing::ValuesIn(ParallelCases()),
                         [](const auto& info) { return info.param.name; });

ParallelCase ParallelCaseNamed(const std::string& name) {
  for (const ParallelCase& c : ParallelCases()) {
    if (c.name == name) return c;
  }
  ADD_FAILURE() << name;
  return {};
}

// Index of the first task of a kind.
size_t FirstTask(const Schedule& schedule, TaskKind kind) {
  for (size_t t = 0; t < schedule.tasks.size(); ++t) {
    if (schedule.tasks[t].kind == kind) return t;
  }
  ADD_FAILURE() << TaskKindName(kind);
  return 0;
}

// An output that is a weight is unloaded when the step is over: the weight itself is the next
// step's by then, and a copy of something else is none.
TEST(OutputsThatAreWeights, AreCopiesMadeBeforeTheUpdate) {
  const ParallelCase c = ParallelCaseNamed("WeightsAsOutputs");
  const Graph graph = Parsed(c.parallel);
  const Schedule schedule = Lowered(c);
  ASSERT_EQ(schedule.output_copies.size(), 2u);
  const auto refused = [&](Schedule mutant, const std::string& why) {
    EXPECT_THAT(CheckSchedule(graph, mutant).ToString(), HasSubstr(why));
  };
  for (const auto& [tensor, copies] : schedule.output_copies) {
    const std::vector<BufferId>& shards = schedule.shards.at(tensor);
    Schedule mutant = schedule;
    mutant.output_copies.erase(tensor);
    for (int32_t t = 0, writer = -1; t < static_cast<int32_t>(mutant.tasks.size()); ++t) {
      Task& task = mutant.tasks[t];
      if (std::count(task.writes.begin(), task.writes.end(), shards[0]) > 0) writer = t;
      if (task.kind != TaskKind::kUnload || task.reads[0] != copies[0]) continue;
      task.reads[0] = shards[0];
      task.deps = {writer};
    }
    refused(mutant, "shard 0 is read after its update");
    mutant.output_copies[tensor] = {copies[0]};
    refused(mutant, "is not read as it is");
    mutant = schedule;
    for (Task& task : mutant.tasks) {
      if (task.kind == TaskKind::kLocal && task.writes[0] == copies[0]) task.phase = Phase::kUpdate;
    }
    EXPECT_FALSE(CheckSchedule(graph, mutant).ok());
  }
}

absl::Status CheckMutant(const std::string& name, TaskKind kind,
                         const std::function<void(Schedule&, Task&)>& mutate) {
  const ParallelCase c = ParallelCaseNamed(name);
  Schedule schedule = Lowered(c);
  mutate(schedule, schedule.tasks[FirstTask(schedule, kind)]);
  return CheckSchedule(Parsed(c.parallel), schedule);
}

TEST(ScheduleMutant, GroupWithoutAMember) {
  const absl::Status status =
      CheckMutant("DataParallelMlp", TaskKind::kAllReduce, [](Schedule& schedule, Task& task) {
        std::erase(schedule.programs[task.devices.back()],
                   static_cast<int32_t>(&task - schedule.tasks.data()));
        task.devices.pop_back();
        task.reads.pop_back();
        task.writes.pop_back();
      });
  EXPECT_THAT(std::string(status.message()), HasSubstr("not summed over all copies"));
}

TEST(ScheduleMutant, AnotherCollective) {
  const absl::Status status =
      CheckMutant("ColumnParallelGathered", TaskKind::kAllGather,
                  [](Schedule&, Task& task) { task.kind = TaskKind::kAllToAll; });
  EXPECT_THAT(std::string(status.message()), HasSubstr("not those of this collective"));
}

TEST(ScheduleMutant, MembersOutOfOrder) {
  const absl::Status status =
      CheckMutant("ColumnParallelGathered", TaskKind::kAllGather,
                  [](Schedule&, Task& task) { std::swap(task.reads[0], task.reads[1]); });
  EXPECT_THAT(std::string(status.message()), HasSubstr("not in the order of its devices"));
}

TEST(ScheduleMutant, BufferOfAnotherDevice) {
  const absl::Status status = CheckMutant(
      "HybridMlp", TaskKind::kCompute,
      [](Schedule& schedule, Task& task) { schedule.buffers[task.reads[0]].device += 1; });
  EXPECT_THAT(std::string(status.message()), HasSubstr("takes no part"));
}

TEST(ScheduleMutant, UpdateTwice) {
  const absl::Status status =
      CheckMutant("HybridMlp", TaskKind::kUpdate, [](Schedule& schedule, Task& task) {
        const Task again = task;
        schedule.programs[again.devices[0]].push_back(static_cast<int32_t>(schedule.tasks.size()));
        schedule.tasks.push_back(again);
      });
  EXPECT_THAT(std::string(status.message()), HasSubstr("a second time"));
}

TEST(ScheduleMutant, UpdateWithAnotherGradient) {
  const absl::Status status =
      CheckMutant("HybridMlp", TaskKind::kUpdate, [](Schedule& schedule, Task& task) {
        for (const Schedule::HostTensor& other : schedule.parameters) {
          for (BufferId id : other.gradients) {
            const Buffer& buffer = schedule.buffers[id];
            if (id != task.reads[1] && buffer.device == task.devices[0]) {
              schedule.buffers[id].box = schedule.buffers[task.reads[1]].box;
              task.reads[1] = id;
              return;
            }
          }
        }
      });
  EXPECT_FALSE(status.ok());
}

TEST(Lowering, UnknownLossIsAnError) {
  const Graph graph = Parsed(kMlp);
  ScheduleOptions options = TrainingOptions(1);
  options.loss = "cost";
  EXPECT_EQ(LowerGraph(graph, SequentialViews(graph), options).status().message(),
            "the model has no output 'cost'");
  options.loss = "y";
  EXPECT_THAT(std::string(LowerGraph(graph, SequentialViews(graph), options).status().message()),
              HasSubstr("not one number"));
}

TEST(Lowering, ViewThatDoesNotFitNamesTheNode) {
  const ParallelCase c = ParallelCaseNamed("DataParallelMlp");
  const Graph graph = Parsed(c.parallel);
  const absl::Status status = LowerGraph(graph, ViewsOf(graph), TrainingOptions(2)).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()), HasSubstr("%4 partition"));
}

TEST(Lowering, MicroBatchesAreRefusedByNode) {
  const Graph graph = Parsed(R"(
%0 = input "x" : f32[8,4]
%1 = pipeline(%0) {axis=0, degree=2} : f32[4,4] mb2
%2 = relu(%1) : f32[4,4] mb2
%3 = batch(%2) {axis=0, degree=2} : f32[8,4]
output "y" = %3
)");
  ScheduleOptions options;
  options.training = false;
  const absl::Status status = LowerGraph(graph, ViewsOf(graph), options).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kUnimplemented);
  EXPECT_THAT(std::string(status.message()), HasSubstr("%1 pipeline"));
}

TEST(Lowering, SequentialModelOnOneDeviceHasNoMoves) {
  const Graph graph = Parsed(kMlp);
  absl::StatusOr<Schedule> schedule = LowerGraph(graph, SequentialViews(graph), TrainingOptions(1));
  ASSERT_TRUE(schedule.ok()) << schedule.status();
  for (const Task& task : schedule->tasks) {
    EXPECT_FALSE(IsCommunication(task.kind));
    EXPECT_NE(task.kind, TaskKind::kLocal);
  }
  // x [8,4] times w1 [4,16].
  const Task& matmul = schedule->tasks[FirstTask(*schedule, TaskKind::kCompute)];
  EXPECT_EQ(matmul.flops, 2 * 8 * 4 * 16);
  EXPECT_EQ(matmul.bytes, 4 * (8 * 4 + 4 * 16 + 8 * 16));
}

TEST(Lowering, InferenceKeepsNothingForTheBackwardPass) {
  const Graph graph = Parsed(kMlp);
  ScheduleOptions options = TrainingOptions(1);
  const absl::StatusOr<Schedule> training = LowerGraph(graph, SequentialViews(graph), options);
  options.training = false;
  const absl::StatusOr<Schedule> inference = LowerGraph(graph, SequentialViews(graph), options);
  ASSERT_TRUE(training.ok() && inference.ok());
  EXPECT_LT(PeakBytes(*inference), PeakBytes(*training));
  for (const Task& task : inference->tasks) EXPECT_NE(task.phase, Phase::kBackward);
}

TEST(Lowering, ArrangedWeightsAreStoredAsTheyAreUsed) {
  const ParallelCase c = ParallelCaseNamed("MergedMatMuls");
  const Schedule schedule = Lowered(c);
  ASSERT_EQ(schedule.parameters.size(), 1u);
  EXPECT_EQ(schedule.parameters[0].leaves.size(), 2u);
  EXPECT_EQ(schedule.parameters[0].tensor.node, NodeId{5});
}

// Indices are fed as their users want them; what depends on constants alone is made once, however
// often it is used.
TEST(Lowering, WhatTheHostHasIsMadeThere) {
  const Graph graph = Parsed(R"(
%0 = input "ids" : i64[4,2,3]
%1 = weight "table" : f32[8,16]
%2 = constant "positions" : f32[1,16]
%3 = input "target" : f32[12,16]
%4 = split(%0) {axis=1, sizes=[1,1]} : i64[4,1,3], i64[4,1,3]
%5 = reshape(%4.1) {shape=[12]} : i64[12]
%6 = embedding(%1, %5) : f32[12,16]
%7 = expand(%2) {shape=[12,16]} : f32[12,16]
%8 = add(%6, %7) : f32[12,16]
%9 = relu(%8) : f32[12,16]
%10 = mul(%9, %7) : f32[12,16]
%11 = mse(%10, %3) : f32[]
output "loss" = %11
)");
  const absl::StatusOr<Schedule> schedule =
      LowerGraph(graph, SequentialViews(graph), TrainingOptions(1));
  ASSERT_TRUE(schedule.ok()) << schedule.status();
  EXPECT_EQ(CheckSchedule(graph, *schedule), absl::OkStatus());
  std::set<std::string> computed;
  for (const Task& task : schedule->tasks) {
    if (task.kind != TaskKind::kCompute) continue;
    computed.insert(std::string(graph.node(task.node).op.name()));
  }
  EXPECT_EQ(computed, (std::set<std::string>{"embedding", "add", "relu", "mul", "mse"}));
  ASSERT_EQ(schedule->inputs.size(), 2u);
  EXPECT_EQ(schedule->inputs[1].tensor.node, NodeId{5});
  ASSERT_EQ(schedule->parameters.size(), 2u);
  EXPECT_FALSE(schedule->parameters[1].trainable);
  EXPECT_EQ(schedule->parameters[1].operators, std::vector<NodeId>{NodeId{7}});
  // Of floats nothing is arranged: that may be much, in every step.
  EXPECT_FALSE(IsMadeOnHost(Operator(OpKind::kReshape), HostLeaves::kInputs, false, true, true));
  // Nor is what is random, or made of what is fed and what is not.
  EXPECT_FALSE(IsMadeOnHost(Operator(OpKind::kDropout), HostLeaves::kConstants, true, true, true));
  EXPECT_EQ(Together(HostLeaves::kInputs, HostLeaves::kConstants, true), HostLeaves::kOther);
  EXPECT_EQ(Together(HostLeaves::kWeights, HostLeaves::kConstants, true), HostLeaves::kOther);
  EXPECT_EQ(Together(HostLeaves::kWeights, HostLeaves::kConstants, false), HostLeaves::kWeights);
}

// Nothing of a weight that all devices have moves to those who read it otherwise.
TEST(Lowering, WeightThatIsReadInTwoWaysIsStoredInTheOneThatHoldsTheOther) {
  const Schedule schedule = Lowered(ParallelCaseNamed("TiedEmbedding"));
  ASSERT_EQ(schedule.parameters.size(), 1u);
  const Schedule::HostTensor& table = schedule.parameters[0];
  EXPECT_EQ(table.tensor.node, NodeId{4});
  EXPECT_EQ(table.stored.size(), 4u);
  for (const Task& task : schedule.tasks) {
    if (task.phase != Phase::kForward || !IsCommunication(task.kind)) continue;
    for (BufferId id : task.reads) {
      EXPECT_EQ(std::count(table.stored.begin(), table.stored.end(), id), 0);
    }
  }
}

// A tensor that two consumers on another device read is sent there once.
TEST(Lowering, ShardIsSentOncePerReceivingDevice) {
  const Graph graph = Parsed(R"(
%0 = input "x" : f32[4,4]
%1 = relu(%0) : f32[4,4]
%2 = tanh(%1) : f32[4,4]
%3 = exp(%1) : f32[4,4]
output "a" = %2
output "b" = %3
)");
  ScheduleOptions options;
  options.training = false;
  options.num_devices = 2;
  std::vector<MachineView> views = ViewsOf(graph);
  views[2].start = views[3].start = 1;
  const absl::StatusOr<Schedule> schedule = LowerGraph(graph, views, options);
  ASSERT_TRUE(schedule.ok());
  int64_t sent = 0;
  for (const Task& task : schedule->tasks) {
    if (task.kind == TaskKind::kSendReceive) sent += task.bytes;
  }
  EXPECT_EQ(sent, 4 * 16);
}

// What brings the logits together keeps no gradient waiting in the queues of links.
TEST(Lowering, OutputIsSentBehindTheGradientOfWhatMadeIt) {
  const ParallelCase c = ParallelCaseNamed("ColumnsToSamplesAndGathered");
  const Graph graph = Parsed(c.parallel);
  const Schedule schedule = Lowered(c);
  const NodeId logits{10};
  int gradients = 0, sent = 0;
  for (int32_t t : schedule.programs[0]) {
    const Task& task = schedule.tasks[t];
    gradients += task.kind == TaskKind::kComputeGradient && task.node == logits;
    if (task.kind != TaskKind::kSendReceive || task.node != graph.outputs()[0].tensor.node) {
      continue;
    }
    EXPECT_EQ(task.phase, Phase::kForward);
    EXPECT_EQ(gradients, 1);
    ++sent;
  }
  EXPECT_EQ(sent, 1);
}

TEST(Schedule, PrintsOneLinePerTask) {
  const ParallelCase c = ParallelCaseNamed("ColumnRowParallelMlp");
  const Schedule schedule = Lowered(c);
  const std::string text = schedule.ToString(Parsed(c.parallel));
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'),
            static_cast<int64_t>(schedule.tasks.size()));
  EXPECT_THAT(text, HasSubstr("forward on 0,1,2,3: all_reduce %12 replicate"));
}

}  // namespace
}  // namespace isomer
