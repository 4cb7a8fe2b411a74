// Gradients that calls add to a sum.
#include "pcg/schedule/memory/additions.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "pcg/schedule/check/check.h"
#include "pcg/schedule/lowering/example_graphs.h"
#include "pcg/schedule/lowering/lower.h"
#include "pcg/schedule/memory/memory.h"
#include "pcg/schedule/memory/views.h"
#include "pcg/schedule/program/program.h"
#include "tests/pcg/schedule/parallel_graphs.h"
#include "tests/pcg/schedule/pipeline_graphs.h"

namespace isomer {
namespace {

using testing::HasSubstr;

// By operator, of calls that add: which of their operands' gradients.
std::vector<std::string> Additions(const Graph& graph, const Schedule& schedule) {
  std::vector<std::string> found;
  for (const Task& task : schedule.tasks) {
    for (size_t w = 0; w < task.writes.size(); ++w) {
      if (!Adds(task, w)) continue;
      found.push_back(std::string(graph.node(task.node).op.name()) + " " + std::to_string(w));
    }
  }
  return found;
}

int NumberOf(const Schedule& schedule, TaskKind kind, bool is_view) {
  return static_cast<int>(std::count_if(
      schedule.tasks.begin(), schedule.tasks.end(),
      [&](const Task& task) { return task.kind == kind && task.is_view == is_view; }));
}

// Two branches from one activation, and a residual that joins them.
constexpr char kResidual[] = R"(
%0 = input "x" : f32[8,16]
%1 = weight "w" : f32[16,16]
%2 = input "target" : f32[8,16]
%3 = matmul(%0, %1) : f32[8,16]
%4 = matmul(%3, %1) : f32[8,16]
%5 = tanh(%4) : f32[8,16]
%6 = add(%3, %5) : f32[8,16]
%7 = mse(%6, %2) : f32[]
output "loss" = %7
)";

TEST(Additions, ProductsAddToWhatAResidualLeft) {
  const Graph graph = Parsed(kResidual);
  const Schedule schedule = LoweredOn(graph, 1);
  // To the gradient of the residual stream, and of the weight that two products read.
  EXPECT_EQ(Additions(graph, schedule), (std::vector<std::string>{"matmul 0", "matmul 1"}))
      << schedule.ToString(graph);
  EXPECT_EQ(NumberOf(schedule, TaskKind::kAccumulate, true), 2);
  EXPECT_EQ(NumberOf(schedule, TaskKind::kAccumulate, false), 0);
  EXPECT_THAT(schedule.ToString(graph), HasSubstr("+=d%1#0@0"));
  // Shares take no memory of their own.
  const std::vector<BufferId> sums = SumsInPlace(schedule), holders = HoldersOf(schedule);
  const MemoryPlan memory = PlanMemory(schedule);
  int shares = 0;
  for (size_t id = 0; id < sums.size(); ++id) {
    if (sums[id] == kNoBuffer) continue;
    ++shares;
    EXPECT_EQ(holders[id], holders[sums[id]]);
    EXPECT_EQ(memory.offsets[id], memory.offsets[sums[id]]);
  }
  EXPECT_EQ(shares, 2);
  // What does nothing is no command.
  for (const Command& command : CompileProgramOf(schedule, memory, 2, /*device=*/0)) {
    EXPECT_NE(schedule.tasks[command.task].kind, TaskKind::kAccumulate);
  }
}

// Both shares are of one call: one of them would be lost if it added both at a time.
TEST(Additions, OneCallAddsOnceToASum) {
  const Graph graph = Parsed(R"(
%0 = input "x" : f32[8,16]
%1 = weight "w" : f32[16,16]
%2 = input "target" : f32[8,16]
%3 = matmul(%0, %1) : f32[8,16]
%4 = mul(%3, %3) : f32[8,16]
%5 = tanh(%3) : f32[8,16]
%6 = add(%4, %5) : f32[8,16]
%7 = mse(%6, %2) : f32[]
output "loss" = %7
)");
  const Schedule schedule = LoweredOn(graph, 1);
  EXPECT_EQ(Additions(graph, schedule), (std::vector<std::string>{"mul 0"}));
  EXPECT_EQ(NumberOf(schedule, TaskKind::kAccumulate, false), 1);
}

// What a communication brought last would have to be waited for: the call runs, and is added then.
TEST(Additions, NobodyWaitsForACommunicationToAdd) {
  const Graph graph = Parsed(R"(
%0 = input "x" : f32[8,16]
%1 = weight "w" : f32[16,16]
%2 = input "target" : f32[8,16]
%3 = partition(%0) {axis=0, degree=2} : f32[8:2,16]
%4 = replicate(%1) {degree=2} : f32[16,16] c2
%5 = matmul(%3, %4) : f32[8:2,16]
%6 = tanh(%5) : f32[8:2,16]
%7 = combine(%6) {axis=0, degree=2} : f32[8,16]
%8 = combine(%5) {axis=0, degree=2} : f32[8,16]
%9 = mul(%7, %8) : f32[8,16]
%10 = mse(%9, %2) : f32[]
output "loss" = %10
)");
  const Schedule schedule = LoweredOn(graph, 2);
  // Of both devices the gradient of the product comes back from device 0 first.
  EXPECT_TRUE(Additions(graph, schedule).empty()) << schedule.ToString(graph);
  EXPECT_EQ(NumberOf(schedule, TaskKind::kAccumulate, false), 2);
}

// No example has another order of what is added than one that is checked.
TEST(Additions, OfAllExamplesWaitForWhatTheyAddTo) {
  int adding = 0;
  for (const ExampleGraph& example : ExampleGraphs()) {
    const Graph graph = Parsed(example.parallel);
    ScheduleOptions options;
    options.num_devices = example.num_devices;
    options.loss = "loss";
    const auto schedule = LowerGraph(graph, ViewsOf(graph, example.strides), options);
    ASSERT_TRUE(schedule.ok()) << schedule.status();
    const std::vector<BufferId> sums = SumsInPlace(*schedule);
    for (size_t t = 0; t < schedule->tasks.size(); ++t) {
      const Task& task = schedule->tasks[t];
      for (size_t w = 0; w < task.writes.size(); ++w) {
        if (!Adds(task, w)) continue;
        ++adding;
        Schedule mutant = *schedule;
        mutant.tasks[t].adds ^= uint32_t{1} << w;
        EXPECT_FALSE(CheckSchedule(graph, mutant).ok()) << example.name << ", task " << t;
        // Whoever changed the sum last is waited for.
        const BufferId sum = sums[task.writes[w]];
        const auto changed = std::find_if(
            schedule->tasks.rend() - static_cast<int64_t>(t), schedule->tasks.rend(),
            [&](const Task& other) { return std::ranges::count(other.writes, sum) > 0; });
        ASSERT_NE(changed, schedule->tasks.rend());
        const auto last = static_cast<int32_t>(schedule->tasks.rend() - changed) - 1;
        EXPECT_GT(std::ranges::count(task.deps, last), 0) << example.name << ", task " << t;
        EXPECT_FALSE(IsCommunication(changed->kind));
      }
    }
  }
  EXPECT_GE(adding, 7);
}

class FalseAdditions : public testing::Test {
 protected:
  void Refuse(const Schedule& mutant, const std::string& what) const {
    const absl::Status status = CheckSchedule(graph_, mutant);
    EXPECT_THAT(std::string(status.message()), HasSubstr(what)) << mutant.ToString(graph_);
  }
  // The first call that adds to its operand 0's gradient, and the accumulation behind it.
  Task& Call(Schedule* schedule) const {
    return *std::find_if(schedule->tasks.begin(), schedule->tasks.end(),
                         [](const Task& task) { return Adds(task, 0); });
  }
  Task& Accumulation(Schedule* schedule) const {
    const BufferId share = Call(schedule).writes[0];
    return *std::find_if(schedule->tasks.begin(), schedule->tasks.end(), [&](const Task& task) {
      return task.kind == TaskKind::kAccumulate && task.reads[0] == share;
    });
  }
  const Graph graph_ = Parsed(kResidual);
  const Schedule schedule_ = LoweredOn(graph_, 1);
};

TEST_F(FalseAdditions, SumsThatAreOverwrittenOrLost) {
  Schedule mutant = schedule_;
  Call(&mutant).adds = 0;
  Refuse(mutant, "in the place of what it is added to");
  mutant = schedule_;
  Accumulation(&mutant).is_view = false;
  Refuse(mutant, "which lies in the place of no sum");
}

TEST_F(FalseAdditions, ToWhatIsNotWritten) {
  for (const uint32_t bits : {1u << 5, 1u << 31}) {
    Schedule mutant = schedule_;
    Call(&mutant).adds |= bits;
    Refuse(mutant, "adds to what it does not write");
  }
  Schedule mutant = schedule_;
  Accumulation(&mutant).adds = 1;
  Refuse(mutant, "adds to what it does not write");
}

TEST_F(FalseAdditions, BeforeTheSumIsThere) {
  Schedule mutant = schedule_;
  const BufferId sum = Accumulation(&mutant).writes[0];
  const auto first = std::find_if(mutant.tasks.begin(), mutant.tasks.end(), [&](const Task& task) {
    return std::ranges::count(task.writes, sum) > 0;
  });
  auto& deps = Call(&mutant).deps;
  const auto wait = std::find(deps.begin(), deps.end(), first - mutant.tasks.begin());
  ASSERT_NE(wait, deps.end());
  deps.erase(wait);
  Refuse(mutant, "without waiting for task");
}

// What a program does in another order than the tasks are in: the call would add to dead bytes, and
// what is summed be written over it.
TEST(Additions, ProgramsAreInTheOrderOfTasks) {
  const Graph graph = Parsed(R"(
%0 = input "x" : f32[8,16]
%1 = weight "w" : f32[16,16]
%2 = weight "w1" : f32[16,16]
%3 = weight "w2" : f32[16,16]
%4 = input "target" : f32[8,16]
%5 = matmul(%0, %1) : f32[8,16]
%6 = matmul(%5, %2) : f32[8,16]
%7 = matmul(%5, %3) : f32[8,16]
%8 = add(%6, %7) : f32[8,16]
%9 = mse(%8, %4) : f32[]
output "loss" = %9
)");
  Schedule schedule = LoweredOn(graph, 1);
  const auto adds = std::find_if(schedule.tasks.begin(), schedule.tasks.end(),
                                 [](const Task& task) { return Adds(task, 0); });
  ASSERT_NE(adds, schedule.tasks.end());
  const BufferId sum = SumsInPlace(schedule)[adds->writes[0]];
  const auto makes =
      std::find_if(schedule.tasks.begin(), schedule.tasks.end(),
                   [&](const Task& task) { return std::ranges::count(task.writes, sum) > 0; });
  const auto first = static_cast<int32_t>(makes - schedule.tasks.begin());
  const auto second = static_cast<int32_t>(adds - schedule.tasks.begin());
  ASSERT_LT(first, second);
  adds->deps.erase(std::find(adds->deps.begin(), adds->deps.end(), first));
  std::vector<int32_t>& program = schedule.programs[0];
  std::swap(*std::find(program.begin(), program.end(), first),
            *std::find(program.begin(), program.end(), second));
  EXPECT_THAT(std::string(CheckSchedule(graph, schedule).message()),
              HasSubstr("comes behind task"));
}

// A share that others are added to would have to be there before it is made.
TEST_F(FalseAdditions, ToShares) {
  Schedule mutant = schedule_;
  const BufferId share = Call(&mutant).writes[0];
  const Task& accumulation = Accumulation(&mutant);
  Task again = accumulation;
  again.writes = {share};
  again.reads = {accumulation.writes[0]};
  mutant.tasks.insert(mutant.tasks.begin() + (&accumulation - mutant.tasks.data()) + 1, again);
  EXPECT_FALSE(CheckViews(graph_, mutant).ok());
}

// The call that adds would read what it changes.
TEST_F(FalseAdditions, ToWhatTheCallReads) {
  Schedule mutant = schedule_;
  Task& call = Call(&mutant);
  const BufferId sum = Accumulation(&mutant).writes[0];
  call.reads.back() = sum;
  EXPECT_THAT(std::string(CheckViews(graph_, mutant).message()),
              HasSubstr("and adds to its bytes"));
}

// A share is part of a sum once it is made, and nobody else's to read.
TEST_F(FalseAdditions, SharesThatOthersRead) {
  Schedule mutant = schedule_;
  const BufferId share = Call(&mutant).writes[0];
  const auto at = &Accumulation(&mutant) - mutant.tasks.data();
  mutant.tasks.insert(mutant.tasks.begin() + at, {.kind = TaskKind::kUnload,
                                                  .phase = Phase::kUpdate,
                                                  .node = mutant.tasks[at].node,
                                                  .devices = {0},
                                                  .reads = {share}});
  EXPECT_THAT(std::string(CheckViews(graph_, mutant).message()), HasSubstr("part of a sum"));
}

TEST_F(FalseAdditions, OfOtherTypesOrBoxes) {
  Schedule mutant = schedule_;
  mutant.buffers[Call(&mutant).writes[0]].dtype = DataType::kBFloat16;
  EXPECT_THAT(std::string(CheckViews(graph_, mutant).message()),
              HasSubstr("cannot lie where its sum does"));
  mutant = schedule_;
  mutant.buffers[Call(&mutant).writes[0]].box.shape[0] /= 2;
  EXPECT_THAT(std::string(CheckViews(graph_, mutant).message()),
              HasSubstr("cannot lie where its sum does"));
}

// The first micro-batch of low precision writes its share in the type of the sum, the others add to
// it: nothing is rounded, and no pass over memory adds or converts.
TEST(Additions, MicroBatchesOfLowPrecisionAreSummedByTheirProducts) {
  const Plan plan = MicroBatchPlan(
      {.layers = 2, .stages = 1, .micro_batches = 4, .batch = 8, .width = 16}, DataType::kBFloat16);
  const auto lowered = LowerPlan(plan);
  ASSERT_TRUE(lowered.ok()) << lowered.status();
  const Schedule& schedule = lowered->schedule;
  EXPECT_EQ(CheckSchedule(lowered->mapped.graph, schedule), absl::OkStatus());
  EXPECT_EQ(NumberOf(schedule, TaskKind::kAccumulate, true), 2 * 3);
  EXPECT_EQ(NumberOf(schedule, TaskKind::kAccumulate, false), 0);
  EXPECT_EQ(NumberOf(schedule, TaskKind::kConvert, true), 2);
  for (const Task& task : schedule.tasks) {
    if (task.kind != TaskKind::kComputeGradient || task.adds == 0) continue;
    for (size_t w = 0; w < task.writes.size(); ++w) {
      if (!Adds(task, w)) continue;
      const Buffer& share = schedule.buffers[task.writes[w]];
      EXPECT_EQ(share.dtype, DataType::kFloat32);
      // Reads the sum of four bytes, and writes it where two bytes were written.
      EXPECT_EQ(ExtraBytes(lowered->mapped.graph, schedule, task, w), share.box.Volume() * 6);
    }
  }
}

}  // namespace
}  // namespace isomer
