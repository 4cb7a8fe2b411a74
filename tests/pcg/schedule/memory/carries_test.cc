// States that go from one step to the next.
#include "pcg/schedule/memory/carries.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "pcg/ir/states.h"
#include "pcg/schedule/check/check.h"
#include "pcg/schedule/memory/memory.h"
#include "pcg/schedule/memory/views.h"
#include "tests/pcg/schedule/parallel_graphs.h"

namespace isomer {
namespace {

using testing::HasSubstr;

// Two devices, each with half of the heads of two caches, of which each step replaces a row.
constexpr char kTwoCaches[] = R"(
%0 = input "keys" : f32[2,4,8,2]
%1 = input "values" : f32[2,4,8,2]
%2 = input "row" : i64[2,4,1,2]
%3 = input "x" : f32[2,4,1,2]
%4 = partition(%0) {axis=1, degree=2} : f32[2,4:2,8,2]
%5 = partition(%1) {axis=1, degree=2} : f32[2,4:2,8,2]
%6 = partition(%2) {axis=1, degree=2} : i64[2,4:2,1,2]
%7 = partition(%3) {axis=1, degree=2} : f32[2,4:2,1,2]
%8 = relu(%7) : f32[2,4:2,1,2]
%9 = scatter_elements(%4, %6, %7) {axis=2} : f32[2,4:2,8,2]
%10 = scatter_elements(%5, %6, %8) {axis=2} : f32[2,4:2,8,2]
%11 = attention(%7, %9, %10) {scale=1} : f32[2,4:2,1,2]
%12 = combine(%9) {axis=1, degree=2} : f32[2,4,8,2]
%13 = combine(%10) {axis=1, degree=2} : f32[2,4,8,2]
%14 = combine(%11) {axis=1, degree=2} : f32[2,4,1,2]
output "y" = %14
output "keys" = %12
output "values" = %13
)";

Schedule Inferred(const Graph& graph, int64_t devices) {
  ScheduleOptions options;
  options.training = false;
  options.num_devices = devices;
  absl::StatusOr<Schedule> schedule = LowerGraph(graph, ViewsOf(graph), options);
  EXPECT_TRUE(schedule.ok()) << schedule.status();
  return schedule.ok() ? *std::move(schedule) : Schedule();
}

std::vector<int32_t> CarriesOf(const Schedule& schedule) {
  std::vector<int32_t> carries;
  for (size_t t = 0; t < schedule.tasks.size(); ++t) {
    if (IsCarry(schedule, schedule.tasks[t])) carries.push_back(static_cast<int32_t>(t));
  }
  return carries;
}

std::string Refused(const Graph& graph, const Schedule& schedule) {
  return std::string(CheckSchedule(graph, schedule).message());
}

TEST(Carries, RowsAreWrittenIntoTheCache) {
  const Graph graph = Parsed(kTwoCaches);
  const Schedule schedule = Inferred(graph, 2);
  ASSERT_EQ(CheckSchedule(graph, schedule), absl::OkStatus());
  const std::vector<int32_t> carries = CarriesOf(schedule);
  EXPECT_EQ(carries.size(), 4u);  // of two caches on two devices
  for (int32_t t : carries) EXPECT_TRUE(schedule.tasks[t].is_view);
  const std::vector<BufferId> holders = HoldersOf(schedule);
  const std::vector<LiveRange> lives = LiveRanges(schedule);
  for (int device : {0, 1}) {
    const BufferId cache = schedule.shards.at({NodeId{4}, 0})[device];
    EXPECT_EQ(holders[schedule.shards.at({NodeId{9}, 0})[device]], cache);
    EXPECT_EQ(lives[cache].first, 0);
    EXPECT_EQ(lives[cache].last, static_cast<int32_t>(schedule.tasks.size()) - 1);
  }
  // The states are put together for nobody: all that is moved is the output.
  EXPECT_FALSE(schedule.shards.contains({NodeId{12}, 0}));
  for (const Task& task : schedule.tasks) {
    if (!IsCommunication(task.kind)) continue;
    EXPECT_EQ(task.node, NodeId{14});
  }
}

TEST(Carries, WhatIsReadLaterIsCopied) {
  // The attention sees the cache as it was.
  std::string text = kTwoCaches;
  const std::string seen = "attention(%7, %9, %10)";
  text.replace(text.find(seen), seen.size(), "attention(%7, %4, %10)");
  const Graph graph = Parsed(text);
  const Schedule schedule = Inferred(graph, 2);
  ASSERT_EQ(CheckSchedule(graph, schedule), absl::OkStatus());
  int views = 0;
  for (int32_t t : CarriesOf(schedule)) views += schedule.tasks[t].is_view;
  EXPECT_EQ(views, 2);  // of the values alone
}

TEST(Carries, AnotherShardingIsMoved) {
  // The next keys are made by samples.
  constexpr char kText[] = R"(
%0 = input "keys" : f32[2,4,8,2]
%1 = partition(%0) {axis=1, degree=2} : f32[2,4:2,8,2]
%2 = combine(%1) {axis=1, degree=2} : f32[2,4,8,2]
%3 = partition(%2) {axis=0, degree=2} : f32[2:2,4,8,2]
%4 = relu(%3) : f32[2:2,4,8,2]
%5 = combine(%4) {axis=0, degree=2} : f32[2,4,8,2]
%6 = relu(%1) : f32[2,4:2,8,2]
%7 = combine(%6) {axis=1, degree=2} : f32[2,4,8,2]
output "y" = %7
output "keys" = %5
)";
  const Graph graph = Parsed(kText);
  const Schedule schedule = Inferred(graph, 2);
  ASSERT_EQ(CheckSchedule(graph, schedule), absl::OkStatus());
  // The host sets the keys in both ways, so both are carried.
  std::map<TaskKind, int> kinds;
  for (int32_t t : CarriesOf(schedule)) ++kinds[schedule.tasks[t].kind];
  EXPECT_EQ(kinds, (std::map<TaskKind, int>{{TaskKind::kLocal, 2}, {TaskKind::kAllToAll, 1}}));
}

// b is in the next step what a is in this.
TEST(Carries, OneThatIsReadByAnotherChangesAfterIt) {
  constexpr char kText[] = R"(
%0 = input "a" : f32[4]
%1 = input "b" : f32[4]
%2 = relu(%0) : f32[4]
%3 = add(%1, %2) : f32[4]
output "y" = %3
output "a" = %2
output "b" = %0
)";
  const Graph graph = Parsed(kText);
  const Schedule schedule = Inferred(graph, 1);
  ASSERT_EQ(CheckSchedule(graph, schedule), absl::OkStatus());
  const std::vector<int32_t> carries = CarriesOf(schedule);
  ASSERT_EQ(carries.size(), 2u);
  EXPECT_EQ(schedule.buffers[schedule.tasks[carries[0]].writes[0]].tensor.node, NodeId{1});
}

TEST(Carries, StatesThatAreExchangedAreRefused) {
  constexpr char kText[] = R"(
%0 = input "a" : f32[4]
%1 = input "b" : f32[4]
%2 = add(%0, %1) : f32[4]
output "y" = %2
output "a" = %1
output "b" = %0
)";
  const Graph graph = Parsed(kText);
  ScheduleOptions options;
  options.training = false;
  const auto schedule = LowerGraph(graph, ViewsOf(graph), options);
  EXPECT_THAT(std::string(schedule.status().message()),
              HasSubstr("states take their next values from each other, 'a' among them"));
}

// Two stages in two micro-batches. Both read the state, and the second makes the next one, which
// goes back to the first: no slot of the step waits for that.
TEST(Carries, TheLastStageLeavesAStateToTheFirst) {
  const Graph graph = Parsed(R"(
%0 = input "h" : f32[4,2]
%1 = input "x" : f32[4,2]
%2 = partition(%0) {axis=0, degree=2} : f32[4:2,2]
%3 = partition(%0) {axis=0, degree=2} : f32[4:2,2]
%4 = partition(%1) {axis=0, degree=2} : f32[4:2,2]
%5 = mul(%2, %4) : f32[4:2,2]
%6 = relu(%5) : f32[4:2,2]
%7 = add(%6, %3) : f32[4:2,2]
%8 = combine(%7) {axis=0, degree=2} : f32[4,2]
output "h" = %8
)");
  std::vector<MachineView> views = ViewsOf(graph);
  for (int id = 2; id < 8; ++id) {
    views[id].start = id == 3 || id == 6 || id == 7 ? 1 : 0;
    views[id].strides.assign(4, 0);
    views[id].moments = {2, 1, 1, 1};
  }
  ScheduleOptions options;
  options.training = false;
  options.num_devices = 2;
  const absl::StatusOr<Schedule> schedule = LowerGraph(graph, views, options);
  ASSERT_TRUE(schedule.ok()) << schedule.status();
  EXPECT_EQ(CheckSchedule(graph, *schedule), absl::OkStatus());
  std::map<TaskKind, int> kinds;
  for (int32_t t : CarriesOf(*schedule)) ++kinds[schedule->tasks[t].kind];
  EXPECT_EQ(kinds, (std::map<TaskKind, int>{{TaskKind::kLocal, 2}, {TaskKind::kSendReceive, 2}}));
}

TEST(Carries, InTrainingAStateIsAnOutput) {
  const Graph graph = Parsed(R"(
%0 = input "a" : f32[4]
%1 = weight "w" : f32[4]
%2 = mul(%0, %1) : f32[4]
%3 = reduce_sum(%2) {axes=[0], keepdims=0} : f32[]
output "loss" = %3
output "a" = %2
)");
  const Schedule schedule = LoweredOn(graph, 1);
  EXPECT_TRUE(CarriesOf(schedule).empty());
}

// Schedules that a lowering with a mistake could make.
class BrokenCarries : public testing::Test {
 protected:
  void SetUp() override {
    graph_ = Parsed(kTwoCaches);
    schedule_ = Inferred(graph_, 2);
    ASSERT_EQ(CheckSchedule(graph_, schedule_), absl::OkStatus());
    carries_ = CarriesOf(schedule_);
    ASSERT_EQ(carries_.size(), 4u);
  }
  Task& carry(int i) { return schedule_.tasks[carries_[i]]; }

  Graph graph_;
  Schedule schedule_;
  std::vector<int32_t> carries_;
};

TEST_F(BrokenCarries, OneIsLeftOut) {
  carry(0).kind = TaskKind::kUnload;
  carry(0).writes.clear();
  carry(0).transfers.clear();
  carry(0).is_view = false;
  EXPECT_THAT(Refused(graph_, schedule_), HasSubstr("has no next value"));
}

TEST_F(BrokenCarries, KeysBecomeValues) {
  std::swap(carry(0).reads, carry(2).reads);
  EXPECT_NE(carry(0).reads, carry(2).reads);
  EXPECT_FALSE(CheckSchedule(graph_, schedule_).ok());
  for (Task* task : {&carry(0), &carry(2)}) task->is_view = false;
  EXPECT_FALSE(CheckSchedule(graph_, schedule_).ok());
}

TEST_F(BrokenCarries, ItIsNoCarryBackToTheStateAsItWas) {
  carry(0).reads = carry(0).writes;
  carry(0).is_view = false;
  EXPECT_FALSE(CheckSchedule(graph_, schedule_).ok());
}

TEST_F(BrokenCarries, ACopyThatIsCalledAViewWritesOverWhatIsRead) {
  std::string text = kTwoCaches;
  const std::string seen = "attention(%7, %9, %10)";
  text.replace(text.find(seen), seen.size(), "attention(%7, %4, %10)");
  graph_ = Parsed(text);
  schedule_ = Inferred(graph_, 2);
  for (int32_t t : CarriesOf(schedule_)) schedule_.tasks[t].is_view = true;
  EXPECT_THAT(Refused(graph_, schedule_), HasSubstr("which is overwritten"));
}

TEST_F(BrokenCarries, ACallThatCannotWriteOverItsOperandDoes) {
  const Graph graph = Parsed(R"(
%0 = input "a" : f32[4,4]
%1 = transpose(%0) {perm=[1,0]} : f32[4,4]
output "a" = %1
)");
  Schedule schedule = Inferred(graph, 1);
  ASSERT_EQ(CheckSchedule(graph, schedule), absl::OkStatus());
  const std::vector<int32_t> carries = CarriesOf(schedule);
  ASSERT_EQ(carries.size(), 1u);
  EXPECT_FALSE(schedule.tasks[carries[0]].is_view);
  schedule.tasks[carries[0]].is_view = true;
  EXPECT_THAT(Refused(graph, schedule), HasSubstr("while it reads it"));
}

TEST_F(BrokenCarries, TheStateIsReadAfterIt) {
  // The attention reads the keys' input instead of the next keys, and comes last.
  std::string text = kTwoCaches;
  const std::string seen = "attention(%7, %9, %10)";
  text.replace(text.find(seen), seen.size(), "attention(%7, %4, %10)");
  graph_ = Parsed(text);
  schedule_ = Inferred(graph_, 2);
  for (size_t t = 0; t < schedule_.tasks.size(); ++t) {
    Task& task = schedule_.tasks[t];
    if (task.kind != TaskKind::kCompute || task.node != NodeId{11}) continue;
    std::vector<int32_t>& program = schedule_.programs[task.devices[0]];
    std::erase(program, static_cast<int32_t>(t));
    const auto last = std::find(program.begin(), program.end(), CarriesOf(schedule_).back());
    program.insert(last == program.end() ? last : last + 1, static_cast<int32_t>(t));
  }
  EXPECT_FALSE(CheckSchedule(graph_, schedule_).ok());
}

}  // namespace
}  // namespace isomer
