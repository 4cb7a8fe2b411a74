// What the tasks of a schedule take on a cost model. Tasks that are alike (of one node, of one
// group and size) are looked up once: a schedule has a few thousand different ones among millions.
#ifndef ISOMER_OPTIMIZER_COST_TASK_TIME_H_
#define ISOMER_OPTIMIZER_COST_TASK_TIME_H_

#include <cstdint>
#include <optional>
#include <tuple>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "optimizer/cost/cost.h"
#include "pcg/ir/graph.h"
#include "pcg/schedule/schedule.h"

namespace isomer {

// What one task takes. What the host does (load, feed, unload) counts nothing.
TaskTime TimeOfTask(const CostModel& cost, const Graph& graph, const Schedule& schedule,
                    const Task& task);
inline double TaskUs(const CostModel& cost, const Graph& graph, const Schedule& schedule,
                     const Task& task) {
  return TimeOfTask(cost, graph, schedule, task).us;
}

// Where some devices of a node stand for all (Schedule::represented), the last of them sends what
// those that are not there would, one after the other: how many these are, itself included.
int64_t SendersInTurn(const Machine& machine, const Schedule& schedule, int32_t device);

// What a send_receive takes: the latencies of the messages that one device receives at one level
// (Machine::LatencyUs), beside which others may use the links, and the busiest link, as often as
// senders stand for others in turn.
struct SendReceiveParts {
  double latency_us = 0, link_us = 0;
  int64_t in_turn = 1;
};
SendReceiveParts PartsOfSendReceive(const CostModel& cost, const Schedule& schedule,
                                    const Task& task);

class TaskTimes {
 public:
  // All must outlive this.
  TaskTimes(const CostModel& cost, const Graph& graph, const Schedule& schedule);

  TaskTime Of(const Task& task);  // TimeOfTask

 private:
  // The calls of a node differ in their direction, the gradients that are wanted and their device.
  struct Call {
    std::vector<bool> wanted;  // none: forward
    int device_kind;
    Work work;
    int64_t extra_bytes;  // all of them
    TaskTime time;
  };
  // Kind, bytes, segments and group: what a task is among all devices, or its own devices; bytes
  // that are packed.
  using Group = std::tuple<TaskKind, int64_t, int32_t, int32_t, SmallList<int32_t, 4>, int64_t>;

  TaskTime CallTime(const Task& task);
  TaskTime CollectiveTime(const Task& task);

  const CostModel& cost_;
  const Graph& graph_;
  const Schedule& schedule_;
  const bool one_kind_;                   // all devices are alike
  std::vector<std::vector<Call>> calls_;  // per node
  absl::flat_hash_map<Group, TaskTime> collectives_;
};

}  // namespace isomer

#endif  // ISOMER_OPTIMIZER_COST_TASK_TIME_H_
