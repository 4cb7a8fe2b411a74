#include "optimizer/search/even_clusters.h"

#include <algorithm>
#include <chrono>
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "optimizer/proposal/proposers.h"
#include "optimizer/search/optimizer.h"
#include "pcg/support/progress.h"
#include "pcg/support/status_macros.h"

namespace isomer {

Machine AllOfKind(const Machine& machine, int kind) {
  Machine even = machine;
  even.name = absl::StrCat(machine.name, ", all ", machine.kinds[kind].name);
  even.kinds = {machine.kinds[kind]};
  even.kind_level = 0;
  even.unit_kinds.clear();
  for (Machine::Level& level : even.levels) {
    if (const auto of = level.of_kind.find(kind); of != level.of_kind.end()) {
      level.bytes_per_us *= of->second.share;
      level.reduces = of->second.reduces;
    }
    level.of_kind.clear();
  }
  return even;
}

std::optional<PartOfKind> NodesOfKind(const Machine& machine, int kind) {
  if (!machine.topology.empty()) return std::nullopt;
  const int64_t node = machine.devices_per_node(), devices = machine.num_devices();
  int64_t first = -1, count = 0, last = -1;
  for (int64_t device = 0; device < devices; ++device) {
    if (machine.kind_index(device) != kind) continue;
    if (first < 0) first = device;
    last = device;
    ++count;
  }
  const bool is_consecutive = count > 0 && last - first + 1 == count;
  if (!is_consecutive || count == devices || first % node != 0 || count % node != 0) {
    return std::nullopt;
  }
  PartOfKind part{AllOfKind(machine, kind), first};
  part.machine.name = absl::StrCat(machine.name, ", ", machine.kinds[kind].name, " alone");
  part.machine.levels.back().count = count / node;
  return part;
}

std::vector<EvenCluster> EvenClustersOf(const Machine& machine) {
  std::vector<EvenCluster> all;
  const std::vector<int> kinds = machine.kinds_in_use();
  if (kinds.size() == 1 || !machine.topology.empty()) return all;
  for (int kind : kinds) {
    if (std::optional<PartOfKind> part = NodesOfKind(machine, kind)) {
      all.push_back({.machine = std::move(part->machine),
                     .kind = kind,
                     .first_device = part->first_device,
                     .is_part = true});
    }
  }
  for (int kind : kinds) all.push_back({.machine = AllOfKind(machine, kind), .kind = kind});
  return all;
}

bool LooksAtEvenClusters(const Machine& machine, const OptimizeOptions& options) {
  return machine.kinds_in_use().size() > 1 && machine.topology.empty() && options.plan.empty() &&
         options.strategy == Strategy::kHierarchical && options.constraints.empty() &&
         options.devices == 0 && options.without.count(kEvenClusters.name) == 0;
}

Plan MovedTo(const Machine& machine, const EvenCluster& even, Plan plan) {
  plan.machine = machine.name;
  plan.num_devices = machine.num_devices();
  for (MachineView& view : plan.views) view.start += even.first_device;
  plan.predicted_step_us = 0;
  plan.predicted_peak_bytes = 0;
  return plan;
}

double StepWithoutLoss(const Machine& machine, const std::vector<EvenCluster>& even) {
  std::map<int, double> us;
  for (const EvenCluster& cluster : even) {
    if (!cluster.is_part && cluster.fits) us[cluster.kind] = cluster.there.step_us;
  }
  double steps_per_us = 0;
  const int64_t devices = machine.num_devices();
  for (int64_t d = 0; d < devices; ++d) {
    const auto of_kind = us.find(machine.kind_index(d));
    if (of_kind == us.end() || of_kind->second == 0) return 0;
    steps_per_us += 1 / of_kind->second / static_cast<double>(devices);
  }
  return 1 / steps_per_us;
}

namespace {

// Takes the plan of an even cluster if it is better on the machine itself.
void TakeIfBetterHere(const CostModel& cost, OptimizeResult here, OptimizeResult* result) {
  const int64_t memory = cost.machine().memory_bytes();
  const auto rank = [&](const Plan& plan) {
    const bool fits = plan.predicted_peak_bytes <= memory;
    return std::pair(
        !fits, fits ? plan.predicted_step_us : static_cast<double>(plan.predicted_peak_bytes));
  };
  if (rank(result->plan) <= rank(here.plan)) return;
  const bool improves = result->fits && here.fits;
  result->proposers.CountBest(
      kEvenClusters.name, improves ? std::optional(result->plan.predicted_step_us) : std::nullopt,
      here.plan.predicted_step_us);
  result->plan = std::move(here.plan);
  result->fits = here.fits;
  result->lowered = std::move(here.lowered);
  result->simulation = std::move(here.simulation);
  result->pipeline = std::move(here.pipeline);
  result->origin = kFound;
  result->bound.reset();  // of another plan
}

}  // namespace

absl::Status TryEvenClusters(const Model& model, const RuleIndex& rules, const CostModel& cost,
                             OptimizeOptions options, const Deadline& deadline,
                             OptimizeResult* result) {
  const auto start = std::chrono::steady_clock::now();
  options.bound_nodes = 0;
  options.keep_baselines = false;
  result->even = EvenClustersOf(cost.machine());
  const bool is_limited = options.search.time_limit_s > 0;
  for (size_t i = 0; i < result->even.size(); ++i) {
    EvenCluster& even = result->even[i];
    if (deadline.Reached().has_value() || (options.whole_machine && even.is_part)) continue;
    SayProgress(absl::StrCat(kEvenClusters.name, ": ", even.machine.ToString()));
    if (is_limited) {
      options.search.time_limit_s =
          std::max(1e-9, deadline.SecondsLeft() / static_cast<double>(result->even.size() - i));
    }
    ISOMER_ASSIGN_OR_RETURN(
        OptimizeResult found,
        Optimize(model, rules, CostModel(even.machine, cost.profile()), options));
    even.there = {found.plan.predicted_step_us, found.plan.predicted_peak_bytes};
    even.fits = found.fits;
    result->proposers.CountPlan(std::string(kEvenClusters.name));
    absl::StatusOr<OptimizeResult> here =
        PricePlan(MovedTo(cost.machine(), even, std::move(found.plan)), cost);
    if (absl::IsResourceExhausted(here.status())) continue;
    ISOMER_RETURN_IF_ERROR(here.status());
    even.here = Prediction{here->plan.predicted_step_us, here->plan.predicted_peak_bytes};
    TakeIfBetterHere(cost, *std::move(here), result);
  }
  result->seconds +=
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return absl::OkStatus();
}

}  // namespace isomer
