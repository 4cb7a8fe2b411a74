#include "optimizer/proposal/plan_bound.h"

#include <algorithm>

#include "pcg/ir/machine_view.h"
#include "pcg/support/status_macros.h"

namespace isomer {
namespace {

// The longest that the plan's derivation begins with; null: none.
const Rewritten* AlgebraOf(const Plan& plan, absl::Span<const Rewritten> rewritten) {
  const Rewritten* algebra = nullptr;
  for (const Rewritten& one : rewritten) {
    if (one.steps.size() <= plan.steps.size() &&
        (algebra == nullptr || one.steps.size() > algebra->steps.size()) &&
        std::equal(one.steps.begin(), one.steps.end(), plan.steps.begin())) {
      algebra = &one;
    }
  }
  return algebra;
}

// The less of the bounds of the model's graph and of the plan's. Equal calls are one, as in plans:
// each use of a rule makes a concatenation of weights, say, of its own.
absl::StatusOr<LowerBound> LeastBound(const Graph& graph, const Rewritten* algebra,
                                      const BoundOptions& bound, CostTables* tables) {
  ISOMER_ASSIGN_OR_RETURN(LowerBound least, BoundStep(graph.Canonical(), bound, tables));
  if (algebra == nullptr) return least;
  ISOMER_ASSIGN_OR_RETURN(const LowerBound other,
                          BoundStep(algebra->graph.Canonical(), bound, tables));
  const double beside_us = std::min(least.beside_us, other.beside_us);
  if (other.step_us < least.step_us) least = other;
  least.beside_us = beside_us;
  return least;
}

absl::StatusOr<std::optional<LowerBound>> ShareOfOneDevice(const Graph& graph,
                                                           const std::string& loss,
                                                           const Rewritten* algebra,
                                                           CostTables* tables) {
  const CostModel& cost = tables->cost();
  if (!cost.uniform()) return std::nullopt;
  ISOMER_ASSIGN_OR_RETURN(LowerBound one,
                          LeastBound(graph, algebra, {.loss = loss, .devices = 1}, tables));
  one.devices = cost.machine().num_devices();
  one.step_us /= static_cast<double>(one.devices);
  one.resources_us = one.beside_us = one.step_us;
  one.by = "work of one device, shared out";
  return one;
}

}  // namespace

absl::StatusOr<std::optional<LowerBound>> BoundOfPlan(const Graph& graph, const Plan& plan,
                                                      absl::Span<const Rewritten> rewritten,
                                                      CostOptions options, BoundOptions bound,
                                                      double close_bound, CostTables* tables) {
  ISOMER_ASSIGN_OR_RETURN(const int64_t moments, NumMicroBatches(plan.graph, plan.views));
  const Rewritten* const algebra = AlgebraOf(plan, rewritten);
  if (moments > 1 || !plan.update.methods.empty()) {
    tables->set_options(options);
    return ShareOfOneDevice(graph, plan.model.loss, algebra, tables);
  }
  options.update_method = plan.update.method;
  bound.enough_us = close_bound * plan.predicted_step_us;
  bound.loss = plan.model.loss;
  const auto lies_behind = [](const MachineView& view) { return view.start > 0; };
  bound.beside = std::any_of(plan.views.begin(), plan.views.end(), lies_behind);
  tables->set_options(options);
  ISOMER_ASSIGN_OR_RETURN(LowerBound least, LeastBound(graph, algebra, bound, tables));
  if (bound.beside) {
    least.step_us = least.beside_us;
    least.by = "mixture, calls beside each other";
  }
  return least;
}

}  // namespace isomer
