#include "optimizer/proposal/search_context.h"

#include <algorithm>
#include <thread>
#include <utility>

#include "optimizer/mapping/arranged_weights.h"
#include "optimizer/proposal/recompute.h"
#include "optimizer/sharding/compute_graph.h"
#include "pcg/support/status_macros.h"

namespace isomer {
namespace {

int ThreadsOf(const OptimizeOptions& options) {
  const int all = static_cast<int>(std::thread::hardware_concurrency());
  return std::max(1, options.threads > 0 ? options.threads : all);
}

CostOptions CostOptionsOf(const OptimizeOptions& options) {
  CostOptions cost{.training = options.training,
                   .precision = options.precision,
                   .optimizer = options.update.optimizer};
  cost.num_devices = options.devices;
  cost.fp8_scaling = options.fp8.scaling;
  cost.gradient_sums = options.update.gradient_sums;
  cost.state_precision = options.update.state_precision;
  cost.clips = options.update.clips;
  cost.averages = options.update.averages;
  cost.updates_together = options.update.bucket_bytes > 0;
  return cost;
}

}  // namespace

GridMemo::Estimates GridMemo::Of(const Key& key, absl::FunctionRef<Estimates()> enumerate) {
  Slot* slot;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    slot = &slots_[key];
  }
  const std::lock_guard<std::mutex> lock(slot->mutex);
  if (!slot->estimates.has_value()) slot->estimates = enumerate();
  return *slot->estimates;
}

SearchContext::SearchContext(const Model& model, const RuleIndex& rules, const CostModel& cost,
                             const OptimizeOptions& options, SharedMemos* shared)
    : model(model),
      cost(cost),
      options(options),
      step(options.plan.empty() ? options.constraints.step : Constraints::OfStep()),
      deadline(Deadline::In(options.search.time_limit_s, options.search.watch)),
      devices(options.devices > 0 ? options.devices : cost.machine().num_devices()),
      tables(rules, cost, CostOptionsOf(options)),
      moves(cost, tables.options()),
      graphs(model, options.equal),
      shared(*shared),
      contest(cost, ThreadsOf(options), &shared->predictions, options.policy, step,
              options.search.watch),
      searches(model, options.search, options.policy, restrictions, deadline, &tables),
      arranges_weights(
          ArrangesWeights(model.graph, AnalyzeCompute(model.graph, options.training))) {}

int SearchContext::threads() const { return ThreadsOf(options); }

CostOptions SearchContext::BaseOptions() const { return CostOptionsOf(options); }

CostOptions SearchContext::OptionsOn(const Submachine& on, double sync_weight) const {
  CostOptions base = BaseOptions();
  base.num_devices = on.devices;
  base.sync_weight = sync_weight;
  return base;
}

absl::StatusOr<Plan> SearchContext::PlanOf(const MappedModel& mapped, const ParallelConfig* config,
                                           CallOrder order) {
  ISOMER_ASSIGN_OR_RETURN(Plan plan, DerivePlan(model, mapped, options.training, &tables, order));
  SetOptions(&plan);
  if (step.recompute) plan.recomputed = RecomputedNodes(*step.recompute, plan.graph);
  if (config != nullptr) config->SetOptions(&plan);
  return plan;
}

void SearchContext::SetOptions(Plan* plan) const {
  plan->precision = options.precision;
  plan->fp8 = options.fp8;
  plan->update = options.update;
}

bool SearchContext::OnPartsToo() const {
  return restrictions.empty() && !Simulates(options.strategy) && !options.whole_machine;
}

bool SearchContext::SearchesParts() const {
  return OnPartsToo() && !WantsMicroBatches() &&
         (options.devices == 0 || options.devices <= cost.machine().devices_per_node());
}

bool SearchContext::DevicesWait() const {
  // Of the step, what devices would compute if the model's work were dealt out evenly.
  const double busy_share =
      baselines.single_device.step_us / static_cast<double>(devices) / contest.step_us();
  return devices > 1 && busy_share <= policy().busy_share && !deadline.Reached().has_value();
}

absl::StatusOr<std::optional<MappedModel>> SearchContext::Search(const CostOptions& cost_options) {
  if (const auto reason = deadline.Reached(); reason.has_value() && !contest.empty()) {
    searches.Stopped(*reason);
    return std::nullopt;
  }
  ISOMER_ASSIGN_OR_RETURN(MappedModel mapped, searches.Search(options.strategy, cost_options));
  return mapped;
}

absl::Status SearchContext::RememberEntered(Submachine* on) {
  for (const auto& [entry, mapped] : on->entered) {
    ISOMER_ASSIGN_OR_RETURN(const Prediction prediction, contest.PredictionOf(entry));
    Remember(mapped, prediction, on);
  }
  return absl::OkStatus();
}

absl::StatusOr<Prediction> SearchContext::Consider(const MappedModel& mapped, Submachine* on) {
  ISOMER_ASSIGN_OR_RETURN(Plan plan, PlanOf(mapped));
  ISOMER_ASSIGN_OR_RETURN(const Prediction found, contest.Consider(std::move(plan), kFound));
  Remember(mapped, found, on);
  ISOMER_RETURN_IF_ERROR(ConsiderOtherwiseArranged(mapped, found));
  return found;
}

absl::StatusOr<Prediction> SearchContext::ConsiderIfAllowed(const MappedModel& mapped,
                                                            Submachine* on) {
  if (!restrictions.Violations(mapped).empty()) return Prediction{kImpossibleUs};
  return Consider(mapped, on);
}

absl::Status SearchContext::ConsiderOtherwiseArranged(MappedModel mapped,
                                                      const Prediction& as_mapped) {
  if (!arranges_weights || !Asks(kArrangedWeights) || !IsVeryNearBest(as_mapped.step_us)) {
    return absl::OkStatus();
  }
  const Proposing proposing(&contest.ledger(), kArrangedWeights.name);
  mapped.copies_arranged = !mapped.copies_arranged;
  ISOMER_ASSIGN_OR_RETURN(Plan plan, PlanOf(mapped));
  return contest.Consider(std::move(plan), kFound).status();
}

// Task graphs have no micro-batches.
void SearchContext::Remember(const MappedModel& mapped, const Prediction& prediction,
                             Submachine* on) {
  const auto has_moments = [](const auto& c) { return c.second.moments > 1; };
  if (std::any_of(mapped.choices.begin(), mapped.choices.end(), has_moments)) return;
  const bool walks =
      policy().IsWorthWalking(static_cast<int64_t>(mapped.choices.size()), on->devices);
  const auto remember = [&](RefinementStart* start) {
    if (prediction.step_us >= start->us) return;
    start->us = prediction.step_us;
    start->mapping.reset();
    if (walks) start->mapping = mapped;
  };
  remember(&on->fastest);
  if (contest.Fits(prediction)) remember(&on->best);
  if (mapped.steps.empty()) remember(&on->as_it_is);
}

constinit const Proposer kArrangedWeights = {
    "arranged_weights", "transposed and joined weights made anew by each device that reads them",
    Proposer::When::kRefine, nullptr, nullptr};

}  // namespace isomer
