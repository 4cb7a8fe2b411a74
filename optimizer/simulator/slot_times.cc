#include "optimizer/simulator/slot_times.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "optimizer/cost/task_time.h"
#include "optimizer/simulator/simulator.h"
#include "pcg/schedule/lowering/lower.h"
#include "pcg/schedule/order/pipeline.h"
#include "pcg/schedule/order/weight_gradients.h"
#include "pcg/support/status_macros.h"

namespace isomer {

absl::StatusOr<PipelineShape> ShapeOfPlan(const CostModel& cost, const Plan& plan) {
  ISOMER_ASSIGN_OR_RETURN(const LoweredPlan lowered, LowerForSimulation(cost.machine(), plan));
  PipelineShape shape = ShapeOf(lowered.schedule, StagesOf(lowered.schedule));
  ISOMER_ASSIGN_OR_RETURN(shape.num_moments, NumMicroBatches(plan.graph, plan.views));
  if (MixesMicroBatches(lowered.schedule)) shape.num_stages = shape.num_chunks = 1;
  return shape;
}

absl::Status SetSlotTimes(const CostModel& cost, Plan* plan) {
  // Enough that orders of other proportions are no better.
  constexpr double kLongest = 1000;
  ISOMER_ASSIGN_OR_RETURN(const LoweredPlan lowered, LowerForSimulation(cost.machine(), *plan));
  const Schedule& schedule = lowered.schedule;
  const std::vector<int32_t> group = GroupsOf(schedule);
  const std::vector<bool> of_weights = WeightGradients(schedule, group);
  TaskTimes times(cost, lowered.mapped.graph, schedule);
  double forward = 0, backward = 0, weights = 0;
  for (size_t t = 0; t < schedule.tasks.size(); ++t) {
    const Task& task = schedule.tasks[t];
    const bool is_forward = task.phase == Phase::kForward;
    if (task.moment == kNoMoment || task.kind == TaskKind::kFeed) continue;
    if ((!is_forward && task.phase != Phase::kBackward) || CrossesGroups(task, group)) continue;
    (is_forward      ? forward
     : of_weights[t] ? weights
                     : backward) += times.Of(task).us * static_cast<double>(task.devices.size());
  }
  const double longest = std::max({forward, backward, weights});
  const auto proportion = [&](double us) {
    return longest > 0 ? std::max(1, static_cast<int32_t>(std::lround(kLongest * us / longest)))
                       : 1;
  };
  plan->zero_bubble.forward = proportion(forward);
  plan->zero_bubble.backward = proportion(backward);
  plan->zero_bubble.weights = proportion(weights);
  return absl::OkStatus();
}

}  // namespace isomer
