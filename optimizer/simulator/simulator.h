// Simulates a schedule: the runtime's execution, replayed on the cost model.
//
// Every device runs its compute tasks in order and, concurrently, its communication in order (on a
// machine of one stream: all in one order); a collective starts when all its devices are ready. A
// task starts when its dependencies are done and its queues are free (FIFO). Messages occupy their
// links only while bytes are transferred: a message between other devices need not wait for their
// latency.
//
// On many devices, one device of each symmetry class is simulated
// (pcg/schedule/symmetry/class_schedule.h), among the links and groups of all.
#ifndef ISOMER_OPTIMIZER_SIMULATOR_SIMULATOR_H_
#define ISOMER_OPTIMIZER_SIMULATOR_SIMULATOR_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "optimizer/cost/cost.h"
#include "optimizer/cost/task_time.h"
#include "optimizer/cost/timeline.h"
#include "pcg/ir/plan.h"
#include "pcg/schedule/lowering/lower.h"
#include "pcg/schedule/memory/byte_uses.h"
#include "pcg/schedule/memory/memory.h"
#include "pcg/schedule/program/program.h"
#include "pcg/schedule/schedule.h"

namespace isomer {

// Queues of a device's program: one if the machine has one stream per device.
inline int32_t NumQueuesOfDevice(const Machine& machine) {
  return machine.one_stream ? 1 : kMostQueues;
}
// Queues of the simulation: per device those of the program (program.h), but that the weights'
// communication within a node is in one queue with the others, since they share the links.
inline int32_t QueueOfDevice(int32_t device, int32_t queue) { return kMostQueues * device + queue; }
inline int32_t ComputeQueue(int32_t device) { return QueueOfDevice(device, kComputeQueue); }
// The queue of a link.
inline int32_t LinkQueue(const Machine& machine, LinkId link) {
  return static_cast<int32_t>(kMostQueues * machine.num_devices()) + link;
}
inline int32_t NumQueues(const Machine& machine) { return LinkQueue(machine, machine.num_links()); }
// Appends the queues of a task: none for host tasks; for communication those of its devices and,
// unless it is a collective (whose cost includes sibling groups), of its links.
void AppendQueues(const CostModel& cost, const Schedule& schedule, const Task& task,
                  std::vector<int32_t>* queues);

struct Simulation {
  int64_t devices = 0;  // simulated devices
  TaskList tasks;       // of one step, as in the schedule
  Timeline timeline;
  double step_us = 0;
  double exposed_tail_us = 0;  // exposed tail: the time after the last gradient
  // Of the fullest device, less what it has beyond the smallest memory of the machine: the plan
  // fits if this does not exceed Machine::memory_bytes().
  int64_t peak_bytes = 0;
  MemoryPeak memory;  // of that device, all its bytes
  // Of several kinds of devices: all bytes of the fullest of each, by kind_index.
  std::map<int, int64_t> peak_bytes_of_kind;
  // Total time of the busiest device's tasks, by kind.
  double compute_us = 0, communication_us = 0;
  // Of many micro-batches fewer are simulated. Those in the middle are alike, and a pipeline of S
  // stages repeats itself with each S of them, or each round (pcg/schedule/order/pipeline.h): so
  // from two simulations whose micro-batches differ by one `period` follows the step of all.
  // `tasks` and `timeline` are those of the larger one; sums over tasks count those of the first
  // `period` alike micro-batches Times() each.
  int64_t micro_batches = 1, simulated_micro_batches = 1;  // the same, or
  double tasks_for_each = 1;                               // LoweredPlan
  int64_t period = 0;
  double Times(int32_t moment) const {
    if (micro_batches == simulated_micro_batches || moment < 1 || moment > period) return 1;
    return 1 + static_cast<double>(micro_batches - simulated_micro_batches) /
                   static_cast<double>(period);
  }
  // Number and total time of all devices' tasks, by the origin of the time.
  struct Origins {
    int64_t tasks = 0;
    double us = 0;
  };
  std::map<TimeOrigin, Origins> origins;
};

// With `memory`, devices run their programs (pcg/schedule/program/program.h): tasks also wait for
// those whose bytes they reuse, and views take no queue slot. Without it, as in searches before
// memory is planned, buffers of different tensors never share bytes.
Simulation Simulate(const CostModel& cost, const Graph& graph, const Schedule& schedule,
                    const MemoryPlan* memory = nullptr);

// A schedule for Simulate: of all devices up to `most_devices`, else of one device of each class
// where devices and links are regular. Weight owners own more among few devices than among all
// (class_schedule.h), so their plans keep kMostOwners devices. ResourceExhausted: too few devices
// are symmetric to simulate the plan on so many.
inline constexpr int64_t kMostDevices = 8, kMostOwners = 16;
absl::StatusOr<LoweredPlan> LowerForSimulation(const Machine& machine, const Plan& plan,
                                               int64_t most_devices = kMostDevices);

// Groups of devices that share no call, directly or not: the stages of a pipeline.
int64_t NumGroupsOfDevices(const Plan& plan);

// A plan made ready to be simulated on machines that differ in rates and latencies alone.
class PreparedPlan {
 public:
  // Lowers the plan, and plans its memory, as PredictPlan does.
  static absl::StatusOr<PreparedPlan> Prepare(const CostModel& cost, const Plan& plan);

  // Microseconds of a step. REQUIRES: the machine has the devices and links of Prepare's.
  double StepUs(const CostModel& cost) const;

 private:
  struct Lowered {
    LoweredPlan plan;
    MemoryPlan memory;
  };
  static Lowered WithMemory(const CostModel& cost, LoweredPlan lowered);

  int64_t micro_batches_ = 1;
  Lowered lowered_;
  std::optional<Lowered> fewer_;  // Simulation::micro_batches
};

// Lowers the plan by LowerForSimulation, simulates it and sets its predictions.
absl::StatusOr<Simulation> PredictPlan(const CostModel& cost, Plan* plan);

// What a search compares plans by: of one that is no pipeline only one device of each class is
// simulated, though messages of several may wait for each other at the links of a node. A step is
// up to 0.5 % off.
absl::StatusOr<Simulation> PredictPlanInSearch(const CostModel& cost, Plan* plan);
// What it simulates, in which LowerForSimulation may have more devices.
absl::StatusOr<LoweredPlan> LowerInSearch(const Machine& machine, const Plan& plan);
// Whether PredictPlan simulates more.
bool SearchLacksDevices(const CostModel& cost, const Plan& plan);

// As PredictPlan, with all devices of each simulated node, which takes up to some seconds. nullopt,
// with the plan unchanged, if PredictPlanInSearch simulates these anyway or if it takes too long.
absl::StatusOr<std::optional<Simulation>> PredictPlanClosely(const CostModel& cost, Plan* plan);

}  // namespace isomer

#endif  // ISOMER_OPTIMIZER_SIMULATOR_SIMULATOR_H_
