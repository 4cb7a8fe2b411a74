// Times for the tasks of a schedule: what the runtime will do, replayed on the cost model.
//
// Every device works through its compute tasks in order, and through its communication in order,
// the two beside each other; a collective starts when all its devices are ready for it. A task
// starts when what it depends on is done and its queues are free (FIFO).
#ifndef ISOMER_OPTIMIZER_SIMULATOR_H_
#define ISOMER_OPTIMIZER_SIMULATOR_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "optimizer/cost.h"
#include "pcg/plan.h"
#include "pcg/schedule/schedule.h"

namespace isomer {

struct TimedTask {
  double us = 0;
  std::vector<int32_t> queues;  // all are occupied from start to end
  std::vector<int32_t> deps;    // earlier tasks
};

struct Timeline {
  std::vector<double> start_us, end_us;  // per task
  double makespan_us = 0;
};

// Tasks start in the order given, as far as they share queues.
Timeline RunTimeline(const std::vector<TimedTask>& tasks);

// What one task of a schedule takes. What the host does (load, feed, unload) counts nothing.
TaskTime TimeOfTask(const CostModel& cost, const Graph& graph, const Schedule& schedule,
                    const Task& task);
inline double TaskUs(const CostModel& cost, const Graph& graph, const Schedule& schedule,
                     const Task& task) {
  return TimeOfTask(cost, graph, schedule, task).us;
}

struct Simulation {
  Timeline timeline;  // of one step, tasks as in the schedule
  double step_us = 0;
  int64_t peak_bytes = 0;
  // Summed over tasks of the busiest device, by what they are.
  double compute_us = 0, communication_us = 0;
  // Tasks and their time, summed over devices, by where the time comes from.
  struct Origins {
    int64_t tasks = 0;
    double us = 0;
  };
  std::map<TimeOrigin, Origins> origins;
};

Simulation Simulate(const CostModel& cost, const Graph& graph, const Schedule& schedule);

// Lowers the plan, simulates it and sets its predictions.
absl::StatusOr<Simulation> PredictPlan(const CostModel& cost, Plan* plan);

// A Chrome/Perfetto trace of a simulated step: a row per device and queue.
absl::Status WriteTrace(const std::string& path, const Plan& plan, const CostModel& cost);

}  // namespace isomer

#endif  // ISOMER_OPTIMIZER_SIMULATOR_H_
