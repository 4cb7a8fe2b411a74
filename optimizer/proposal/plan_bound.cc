#include "optimizer/proposal/plan_bound.h"

#include <algorithm>
#include <limits>
#include <set>
#include <vector>

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

// Whether all kinds say how fast attention is, or none: which of the two is faster depends on its
// heads.
bool SayAlikeOfAttention(const Machine& machine) {
  const DeviceKind& first = machine.kind(0);
  return std::all_of(machine.kinds.begin(), machine.kinds.end(), [&](const DeviceKind& kind) {
    return (kind.attention_fraction == 0) == (first.attention_fraction == 0) &&
           (kind.attention_backward_fraction == 0) == (first.attention_backward_fraction == 0);
  });
}

// A machine of one device that takes no longer for any call than each kind of `machine` does, times
// what that kind weighs.
Machine FasterThanAll(const Machine& machine, const std::vector<double>& weight) {
  Machine one = machine;
  one.unit_kinds.clear();
  for (Machine::Level& level : one.levels) {
    level.count = 1;
    level.of_kind.clear();
  }
  DeviceKind best = machine.kinds[machine.kinds_in_use()[0]];
  best.launch_us = std::numeric_limits<double>::infinity();
  best.flops_per_us = best.memory_bytes_per_us = best.fp8_flops_per_us = 0;
  best.multiprocessors = 0;  // products of all shapes are as fast
  std::set<DataType> dtypes;
  for (int k : machine.kinds_in_use()) {
    for (const auto& [dtype, rate] : machine.kinds[k].flops_per_us_of) dtypes.insert(dtype);
  }
  best.flops_per_us_of.clear();
  for (int k : machine.kinds_in_use()) {
    const DeviceKind& kind = machine.kinds[k];
    const auto most = [&](double rate, double* of_best) {
      *of_best = std::max(*of_best, rate / weight[k]);
    };
    best.launch_us = std::min(best.launch_us, kind.launch_us * weight[k]);
    most(kind.flops_per_us, &best.flops_per_us);
    most(kind.memory_bytes_per_us, &best.memory_bytes_per_us);
    most(kind.Fp8FlopsPerUs(), &best.fp8_flops_per_us);
    for (DataType dtype : dtypes) most(kind.FlopsPerUs(dtype), &best.flops_per_us_of[dtype]);
    best.attention_fraction = std::max(best.attention_fraction, kind.attention_fraction);
    best.attention_backward_fraction =
        std::max(best.attention_backward_fraction, kind.attention_backward_fraction);
  }
  one.kinds = {best};
  return one;
}

// Of several kinds of devices. For any weights of kinds, the devices' time in a step, each times
// its weight, is at least that of all calls, each on the kind where it weighs least. Kinds weigh as
// much as they compute: then it matters least which does what.
absl::StatusOr<std::optional<LowerBound>> ShareOfUnlikeDevices(const Graph& graph,
                                                               const std::string& loss,
                                                               const Rewritten* algebra,
                                                               CostTables* tables) {
  const CostModel& cost = tables->cost();
  const Machine& machine = cost.machine();
  // Measured times are of one kind, whose weights nothing says.
  if (cost.profile() != nullptr || !SayAlikeOfAttention(machine)) return std::nullopt;
  std::vector<double> weight;
  for (const DeviceKind& kind : machine.kinds) {
    weight.push_back(kind.FlopsPerUs(tables->options().precision));
  }
  double all = 0;
  for (int64_t d = 0; d < machine.num_devices(); ++d) all += weight[machine.kind_index(d)];
  const CostModel faster(FasterThanAll(machine, weight));
  CostOptions options = tables->options();
  options.num_devices = 0;  // the one that there is
  CostTables of_one(tables->rules(), faster, options);
  ISOMER_ASSIGN_OR_RETURN(LowerBound one,
                          LeastBound(graph, algebra, {.loss = loss, .devices = 1}, &of_one));
  one.devices = machine.num_devices();
  one.step_us /= all;
  one.resources_us = one.beside_us = one.step_us;
  one.by = "work of one device, shared out by speed";
  return one;
}

absl::StatusOr<std::optional<LowerBound>> ShareOfOneDevice(const Graph& graph,
                                                           const std::string& loss,
                                                           const Rewritten* algebra,
                                                           CostTables* tables) {
  const CostModel& cost = tables->cost();
  if (!cost.uniform()) return ShareOfUnlikeDevices(graph, loss, algebra, tables);
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
