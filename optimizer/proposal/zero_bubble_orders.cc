#include "optimizer/proposal/zero_bubble_orders.h"

#include <optional>
#include <string>
#include <utility>

#include "optimizer/proposal/pipeline_schedule.h"
#include "optimizer/proposal/search_context.h"
#include "optimizer/simulator/simulator.h"
#include "optimizer/simulator/slot_times.h"
#include "pcg/schedule/order/pipeline.h"
#include "pcg/support/status_macros.h"

namespace isomer {
namespace {

absl::Status TryOrders(SearchContext* context, Submachine*) {
  const Contest& contest = context->contest;
  if (contest.empty() || !contest.fits()) return absl::OkStatus();
  const Plan best = contest.best().plan;
  const std::string origin = contest.best().origin;
  if (best.update.steps_between_flushes > 1 || best.zero_bubble.splits() ||
      NumGroupsOfDevices(best) == 1) {
    return absl::OkStatus();
  }
  ISOMER_ASSIGN_OR_RETURN(PipelineShape shape, ShapeOfPlan(context->cost, best));
  if (shape.num_moments == 1 || shape.num_stages == 1) return absl::OkStatus();
  double bubble = shape.IdleShare();
  std::optional<ZeroBubble> slots;  // what they take, whatever their order
  for (PipelineSchedule schedule : {PipelineSchedule::kZbH1, PipelineSchedule::kZbH2}) {
    shape.zero_bubble = ZeroBubbleOf(schedule, shape);
    // All that a pipeline of equal stages gains.
    if (bubble - shape.IdleShare() < context->policy().bubble_gain) continue;
    Plan plan = best;
    plan.zero_bubble = slots.value_or(shape.zero_bubble);
    if (!slots.has_value()) ISOMER_RETURN_IF_ERROR(SetSlotTimes(context->cost, &plan));
    slots = plan.zero_bubble;
    plan.zero_bubble.most_in_flight = shape.zero_bubble.most_in_flight;
    const absl::StatusOr<Prediction> prediction =
        context->contest.Consider(std::move(plan), origin);
    // More micro-batches in flight take more memory.
    if (!prediction.ok() || !contest.Fits(*prediction)) break;
    bubble = shape.IdleShare();
  }
  return absl::OkStatus();
}

}  // namespace

constinit const Proposer kZeroBubbleOrders = {
    "zero_bubble", "gradients of weights where the pipeline would wait",
    Proposer::When::kAfterwards,
    [](const SearchContext& context, const Submachine&) {
      return context.options.plan.empty() && context.options.training;
    },
    TryOrders};

}  // namespace isomer
