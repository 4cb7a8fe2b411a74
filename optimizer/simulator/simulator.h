// Times for the tasks of a schedule: what the runtime will do, replayed on the cost model.
//
// Every device works through its compute tasks in order, and through its communication in order,
// the two beside each other (on a machine of one stream: through all in one order); a collective
// starts when all its devices are ready for it. A task starts when what it depends on is done and
// its queues are free (FIFO). Messages occupy the links they take for as long as their bytes need:
// what is sent between other devices follows without waiting for their latency.
//
// On many devices, one of each class that does the same is simulated
// (pcg/schedule/symmetry/class_schedule.h) among links and groups of all.
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
#include "pcg/schedule/schedule.h"

namespace isomer {

// Of a device's program: one where the machine has one stream a device.
inline int32_t NumQueuesOfDevice(const Machine& machine) {
  return machine.one_stream ? 1 : kMostQueues;
}
// Queues of the simulation: a device has one for compute and one for communication, of both queues
// of communication that its program has, since these share the links.
inline int32_t ComputeQueue(int32_t device) { return 2 * device; }
inline int32_t CommunicationQueue(int32_t device) { return 2 * device + 1; }
// And every link has one.
inline int32_t LinkQueue(const Machine& machine, LinkId link) {
  return static_cast<int32_t>(2 * machine.num_devices()) + link;
}
inline int32_t NumQueues(const Machine& machine) { return LinkQueue(machine, machine.num_links()); }
// The queues of a task of a schedule: of what the host does, none; of a communication, those of its
// devices and, unless it is a collective (whose cost knows of its siblings), of the links it takes.
void AppendQueues(const CostModel& cost, const Schedule& schedule, const Task& task,
                  std::vector<int32_t>* queues);

struct Simulation {
  int64_t devices = 0;  // that were simulated
  TaskList tasks;       // of one step, as in the schedule
  Timeline timeline;
  double step_us = 0;
  double exposed_tail_us = 0;  // of that, when no gradient is computed any more
  int64_t peak_bytes = 0;
  MemoryPeak memory;  // of the device that needs most
  // Summed over tasks of the busiest device, by what they are.
  double compute_us = 0, communication_us = 0;
  // Tasks and their time, summed over devices, by where the time comes from.
  struct Origins {
    int64_t tasks = 0;
    double us = 0;
  };
  std::map<TimeOrigin, Origins> origins;
};

// `memory`: what devices run is then their program (pcg/schedule/program/program.h): tasks wait for
// those whose bytes they take, too, and views take no place in a queue. Without it, as searches see
// plans before these have a memory plan, buffers of different tensors never share bytes.
Simulation Simulate(const CostModel& cost, const Graph& graph, const Schedule& schedule,
                    const MemoryPlan* memory = nullptr);

// A schedule that Simulate can do with: of all devices up to `most_devices`, of more that of one
// device of each class where devices and links are regular. Owners of weights own more among few
// devices than among all (class_schedule.h), so that their plans keep kMostOwners devices.
// ResourceExhausted: too few devices are alike to simulate the plan on so many.
inline constexpr int64_t kMostDevices = 8, kMostOwners = 16;
absl::StatusOr<LoweredPlan> LowerForSimulation(const Machine& machine, const Plan& plan,
                                               int64_t most_devices = kMostDevices);

// Lowers the plan so, simulates it and sets its predictions.
absl::StatusOr<Simulation> PredictPlan(const CostModel& cost, Plan* plan);

// The same with all devices of each node that is there, which takes up to some seconds. Nothing,
// and the plan stays, if PredictPlan does so too, or if it takes too long.
absl::StatusOr<std::optional<Simulation>> PredictPlanClosely(const CostModel& cost, Plan* plan);

}  // namespace isomer

#endif  // ISOMER_OPTIMIZER_SIMULATOR_SIMULATOR_H_
