// Times of a schedule's tasks on a cost model. Equal tasks (of one node, or of one group and size)
// are looked up once: a schedule has a few thousand different ones among millions.
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

// Host tasks (load, feed, unload) take 0.
TaskTime TimeOfTask(const CostModel& cost, const Graph& graph, const Schedule& schedule,
                    const Task& task);
inline double TaskUs(const CostModel& cost, const Graph& graph, const Schedule& schedule,
                     const Task& task) {
  return TimeOfTask(cost, graph, schedule, task).us;
}

// Where some devices of a node represent all (Schedule::represented), the last of them also sends,
// one after the other, for those left out: the number of these senders, itself included.
int64_t SendersInTurn(const Machine& machine, const Schedule& schedule, int32_t device);

// Time of a send_receive: the latencies of the messages that one device receives at one level
// (Machine::LatencyUs), during which the links are free for others, and the busiest link's
// transfer, once per sender in turn.
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
  // Calls of one node differ in direction, wanted gradients and device.
  struct Call {
    std::vector<bool> wanted;  // empty: forward
    int device_kind;
    Work work;
    int64_t extra_bytes;  // summed
    TaskTime time;
  };
  // Kind, bytes, segments, full group or the task's own devices, packed bytes.
  using Group = std::tuple<TaskKind, int64_t, int32_t, int32_t, SmallList<int32_t, 4>, int64_t>;

  TaskTime CallTime(const Task& task);
  TaskTime CollectiveTime(const Task& task);

  const CostModel& cost_;
  const Graph& graph_;
  const Schedule& schedule_;
  const bool one_kind_;                   // all devices are of one kind
  std::vector<std::vector<Call>> calls_;  // per node
  absl::flat_hash_map<Group, TaskTime> collectives_;
};

}  // namespace isomer

#endif  // ISOMER_OPTIMIZER_COST_TASK_TIME_H_
