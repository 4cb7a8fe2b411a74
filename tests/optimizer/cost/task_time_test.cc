// What tasks take, beside what tests of costs and of whole schedules say of them.
#include "optimizer/cost/task_time.h"

#include <gtest/gtest.h>

#include <utility>

#include "pcg/ir/graph.h"
#include "pcg/schedule/schedule.h"
#include "tests/optimizer/test_machine.h"

namespace isomer {
namespace {

// Two devices gather, or scatter, a matrix cut along a dim.
Schedule Collective(TaskKind kind, size_t dim, Graph* graph) {
  graph->AddInput("x", SequentialType({1024, 512}));
  Schedule schedule;
  schedule.options.num_devices = 2;
  Task task{.kind = kind, .phase = Phase::kForward, .node = {0}};
  task.devices = {0, 1};
  for (int32_t d = 0; d < 2; ++d) {
    Box whole = {{0, 0}, {1024, 512}}, part = whole;
    part.shape[dim] /= 2;
    part.origin[dim] = d * part.shape[dim];
    for (const bool reads : {true, false}) {
      const bool is_part = reads == (kind == TaskKind::kAllGather);
      schedule.buffers.push_back({.role = BufferRole::kActivation,
                                  .tensor = {NodeId{0}, 0},
                                  .device = d,
                                  .box = is_part ? part : whole});
      (reads ? task.reads : task.writes)
          .push_back(static_cast<BufferId>(schedule.buffers.size()) - 1);
    }
  }
  task.bytes = 1024 * 512 * 4;
  schedule.tasks.push_back(std::move(task));
  return schedule;
}

TEST(TaskTime, CollectivesOfColumnsArePacked) {
  const CostModel cost(TestMachine(1, 2));
  for (TaskKind kind : {TaskKind::kAllGather, TaskKind::kReduceScatter}) {
    Graph graph, same;
    const Schedule rows = Collective(kind, 0, &graph), columns = Collective(kind, 1, &same);
    const int64_t bytes = rows.tasks[0].bytes;
    const double packing = cost.ElementwiseTime(TaskKind::kLocal, 2 * bytes).us;
    EXPECT_NEAR(TaskUs(cost, same, columns, columns.tasks[0]),
                TaskUs(cost, graph, rows, rows.tasks[0]) + packing, 1e-9);
    // Links are free again while pieces are copied.
    EXPECT_EQ(TimeOfTask(cost, same, columns, columns.tasks[0]).beyond_links_us, packing);
    EXPECT_EQ(TimeOfTask(cost, graph, rows, rows.tasks[0]).beyond_links_us, 0);
    // Collectives alike but for that are told apart.
    TaskTimes times(cost, same, columns);
    EXPECT_EQ(times.Of(columns.tasks[0]).us, TaskUs(cost, same, columns, columns.tasks[0]));
  }
}

// One device of a node that sends for all four of it has them on the node's link; what it receives
// alone is there once.
TEST(TaskTime, DevicesThatStandForANodeShareItsLink) {
  const CostModel cost(TestMachine(2, 4));
  Graph graph;
  graph.AddInput("x", SequentialType({1024, 512}));
  Schedule schedule;
  schedule.options.num_devices = 8;
  for (int32_t device : {0, 4}) {
    schedule.buffers.push_back({.role = BufferRole::kActivation,
                                .tensor = {NodeId{0}, 0},
                                .device = device,
                                .box = {{0, 0}, {1024, 512}}});
  }
  Task task{.kind = TaskKind::kSendReceive, .phase = Phase::kForward, .node = {0}};
  task.devices = {0, 4};
  task.reads = {0};
  task.writes = {1};
  task.transfers = {{0, 0}};
  schedule.wholes.push_back({.devices = {0, 4}, .counts = {}});
  const std::vector<int32_t> all = {0, 1, 2, 3, 4, 5, 6, 7};
  schedule.wholes.push_back({.devices = all, .counts = {{.receivers = 4, .senders = 4}}});
  schedule.wholes.push_back({.devices = all, .counts = {{.receivers = 1, .senders = 1}}});
  const auto link_us = [&](int32_t whole) {
    task.whole = whole;
    return PartsOfSendReceive(cost, schedule, task).link_us;
  };
  EXPECT_GT(link_us(-1), 0);
  EXPECT_DOUBLE_EQ(link_us(0), link_us(-1));
  EXPECT_DOUBLE_EQ(link_us(1), 4 * link_us(-1));
  EXPECT_DOUBLE_EQ(link_us(2), link_us(-1));
}

}  // namespace
}  // namespace isomer
