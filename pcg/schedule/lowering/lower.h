// From a plan, or a graph with a view for each node, to the schedule of its tasks: the forward
// pass, its duals, updates, and what makes a list for each device of them.
#ifndef ISOMER_PCG_SCHEDULE_LOWERING_LOWER_H_
#define ISOMER_PCG_SCHEDULE_LOWERING_LOWER_H_

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "pcg/ir/graph.h"
#include "pcg/ir/machine_view.h"
#include "pcg/ir/plan.h"
#include "pcg/ir/precision.h"
#include "pcg/schedule/lowering/call_table.h"
#include "pcg/schedule/schedule.h"

namespace isomer {

// Lowers `graph` with one view per node. Errors: a view that does not fit its node, micro-batches
// (Unimplemented), no such loss; they name the node.
absl::StatusOr<Schedule> LowerGraph(const Graph& graph, absl::Span<const MachineView> views,
                                    const ScheduleOptions& options);
// LowerGraph, with branches side by side (execution_order.h), as plans have them, or with calls as
// the graph has them.
absl::StatusOr<Schedule> LowerInOrder(const Graph& graph, absl::Span<const MachineView> views,
                                      const ScheduleOptions& options, bool interleave);
// That but for `shardings`, of which it gives the table that they are from, if `calls` is not null,
// and for what it does to the list of tasks as a whole; and that: steps without flushes, deps, the
// order of micro-batches, programs.
absl::StatusOr<Schedule> LowerToTasks(const Graph& graph, absl::Span<const MachineView> views,
                                      const ScheduleOptions& options, bool interleave,
                                      CallTable* calls = nullptr);
// `graph`: that of the nodes of its tasks.
absl::Status FinishSchedule(const Graph& graph, Schedule* schedule);

// The plan's graph in the plan's precision (pcg/ir/precision.h), and its schedule.
struct LoweredPlan {
  MappedGraph mapped;
  Schedule schedule;
  double tasks_for_each = 1;  // of those that were lowered, KeepOneOfSymmetricDevices
};
absl::StatusOr<LoweredPlan> LowerPlan(const Plan& plan, bool keep_gradients = false);
// What LowerPlan lowers with.
ScheduleOptions ScheduleOptionsOf(const Plan& plan);

}  // namespace isomer

#endif  // ISOMER_PCG_SCHEDULE_LOWERING_LOWER_H_
