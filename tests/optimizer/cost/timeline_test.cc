#include "optimizer/cost/timeline.h"

#include <gtest/gtest.h>

#include <array>
#include <vector>

namespace isomer {
namespace {

// 10 -> {15, 20} -> 25
TaskList Diamond(const std::array<int32_t, 4>& queues) {
  TaskList tasks;
  tasks.Add(10, {queues[0]}, {});
  tasks.Add(15, {queues[1]}, {0});
  tasks.Add(20, {queues[2]}, {0});
  tasks.Add(25, {queues[3]}, {1, 2});
  return tasks;
}

std::vector<int32_t> TasksOf(const std::vector<CriticalTask>& path) {
  std::vector<int32_t> tasks;
  for (const CriticalTask& critical : path) tasks.push_back(critical.task);
  return tasks;
}

TEST(Timeline, DiamondOnEnoughDevices) {
  const TaskList tasks = Diamond({0, 1, 2, 3});
  const Timeline timeline = RunTimeline(tasks);
  EXPECT_EQ(timeline.makespan, 55);
  EXPECT_EQ(TasksOf(CriticalPath(tasks, timeline)), (std::vector<int32_t>{0, 2, 3}));
}

TEST(Timeline, DiamondOneTaskAtATime) {
  const TaskList tasks = Diamond({0, 0, 0, 0});
  const Timeline timeline = RunTimeline(tasks);
  EXPECT_EQ(timeline.makespan, 70);
  const std::vector<CriticalTask> path = CriticalPath(tasks, timeline);
  EXPECT_EQ(TasksOf(path), (std::vector<int32_t>{0, 1, 2, 3}));
  EXPECT_EQ(path[0].wait.task, -1);
  EXPECT_EQ(path[1].wait.queue, -1);  // it depends on 0
  EXPECT_EQ(path[2].wait.queue, 0);   // it could run beside 1, were there another queue
}

TEST(Timeline, ACollectiveWaitsForAllItsDevices) {
  TaskList tasks;
  tasks.Add(10, {0}, {});
  tasks.Add(30, {2}, {});
  tasks.Add(5, {1, 3}, {0, 1});
  tasks.Add(1, {0}, {});
  const Timeline timeline = RunTimeline(tasks);
  EXPECT_EQ(timeline.start[2], 30);
  EXPECT_EQ(timeline.start[3], 10);  // compute goes on beside it
  EXPECT_EQ(timeline.makespan, 35);
}

TEST(Timeline, ASharedLinkIsUsedInTurn) {
  TaskList tasks;
  tasks.Add(4, {0, 8}, {});
  tasks.Add(4, {1, 8}, {});
  tasks.Add(4, {2}, {});
  const Timeline timeline = RunTimeline(tasks);
  EXPECT_EQ(timeline.start[1], 4);
  EXPECT_EQ(timeline.start[2], 0);
}

TEST(Timeline, AMessageLeavesALinkBeforeItArrives) {
  TaskList tasks(/*first_link=*/8);
  tasks.Add(10, {0, 8}, {}, /*beyond_links=*/7);
  tasks.Add(10, {1, 8}, {}, 7);
  tasks.Add(10, {0, 8}, {}, 7);  // the device is still busy
  tasks.Add(2, {2}, {1});
  EXPECT_EQ(tasks.occupied(0, 0), 10);
  EXPECT_EQ(tasks.occupied(0, 8), 3);
  const Timeline timeline = RunTimeline(tasks);
  EXPECT_EQ(timeline.start[1], 3);
  EXPECT_EQ(timeline.start[2], 10);
  EXPECT_EQ(timeline.start[3], 13);  // what depends on it waits until it has arrived
  EXPECT_EQ(timeline.makespan, 20);
}

TEST(Timeline, TheCriticalPathCountsATaskUntilTheNextMayUseItsLink) {
  TaskList tasks(8);
  tasks.Add(10, {0, 8}, {}, 7);
  tasks.Add(10, {1, 8}, {}, 7);
  const std::vector<CriticalTask> path = CriticalPath(tasks, RunTimeline(tasks));
  ASSERT_EQ(path.size(), 2);
  EXPECT_EQ(path[0].time, 3);
  EXPECT_EQ(path[1].wait.queue, 8);
  EXPECT_EQ(path[1].time, 10);
}

TEST(Timeline, NothingTakesNoTime) {
  EXPECT_EQ(RunTimeline(TaskList()).makespan, 0);
  EXPECT_TRUE(CriticalPath(TaskList(), Timeline()).empty());
}

}  // namespace
}  // namespace isomer
