#include "optimizer/proposal/baseline_proposers.h"

#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "optimizer/proposal/baselines.h"
#include "optimizer/proposal/grid_plan.h"
#include "optimizer/proposal/grid_search.h"
#include "optimizer/proposal/search_context.h"
#include "optimizer/proposal/step_constraint.h"
#include "optimizer/proposal/striped_order.h"
#include "optimizer/simulator/slot_times.h"
#include "pcg/support/status_macros.h"

namespace isomer {
namespace {

// As far as the user's flags go.
template <const char* kName>
bool IsWanted(const SearchContext& context, const Submachine&) {
  return kName != kZero3 || context.options.training;
}

template <const char* kName>
absl::Status Enter(SearchContext* context, Submachine* on) {
  return EnterBaseline(kName, context, on);
}

// A baseline that does not do as a user says of the step, changed so that it does, if that makes it
// so: the search may begin there.
absl::Status EnterAsWanted(const MappedModel& mapped, Plan plan, std::vector<NodeId> recomputed,
                           SearchContext* context, Submachine* on) {
  plan.recomputed = std::move(recomputed);
  plan.update.method = context->options.update.method;
  ISOMER_ASSIGN_OR_RETURN(const std::string deviation,
                          DeviationOf(context->step, context->cost, plan));
  if (!deviation.empty()) return absl::OkStatus();
  const int entry = context->contest.Enter(std::move(plan), kFound);
  if (on != nullptr) on->entered.emplace_back(entry, mapped);
  return absl::OkStatus();
}

absl::StatusOr<int> EnterMapping(const MappedModel& mapped, const std::string& name,
                                 const ParallelConfig* config, SearchContext* context,
                                 Submachine* on) {
  ISOMER_ASSIGN_OR_RETURN(Plan plan, context->PlanOf(mapped, config));
  std::vector<NodeId> recomputed = plan.recomputed;
  if (config == nullptr) plan.recomputed.clear();
  if (name == kZero3) plan.update.method = UpdateMethod::kShardedWeights;
  const OptimizeOptions& options = context->options;
  bool takes_part = options.plan == name ||
                    (options.plan.empty() &&
                     (options.choose_update_method || plan.update.method == options.update.method));
  // Of configurations there are only those with the stages that calls are bound to.
  const bool may_run = context->restrictions.Violations(mapped).empty() &&
                       (config != nullptr || context->restrictions.least_stages() == 1);
  ISOMER_ASSIGN_OR_RETURN(const std::string deviation,
                          DeviationOf(context->step, context->cost, plan));
  if (name != kSingleDevice && !(may_run && deviation.empty())) {
    context->baselines.ignoring.push_back(name);
    takes_part &= !options.plan.empty();
    if (may_run) {
      ISOMER_RETURN_IF_ERROR(EnterAsWanted(mapped, plan, std::move(recomputed), context, on));
    }
  }
  takes_part &= name != kSingleDevice;
  std::optional<Plan> kept;
  if (options.keep_baselines && name != kSingleDevice) kept = plan;
  const int entry = context->contest.Enter(std::move(plan), name, takes_part);
  if (kept.has_value()) context->baselines.plan_of_entry[entry] = *std::move(kept);
  if (takes_part && on != nullptr) on->entered.emplace_back(entry, mapped);
  return entry;
}

// A baseline may be several plans: the fastest that fits counts, or the smallest.
absl::StatusOr<Prediction> PredictBaseline(const std::string& name, int entry,
                                           SearchContext* context) {
  Baselines& baselines = context->baselines;
  ISOMER_ASSIGN_OR_RETURN(const Prediction prediction, context->contest.PredictionOf(entry));
  if (name == kSingleDevice) return baselines.single_device = prediction;
  const auto [known, added] = baselines.predictions.try_emplace(name, prediction);
  auto kept = baselines.plan_of_entry.extract(entry);
  if (added || context->contest.Rank(prediction) < context->contest.Rank(known->second)) {
    known->second = prediction;
    if (!kept.empty()) baselines.plans[name] = std::move(kept.mapped());
  }
  return prediction;
}

// One form of the configuration that a user asks for. NotFound: the model cannot be mapped so.
absl::Status EnterConfig(const ParallelConfig& config, SearchContext* context) {
  const OptimizeOptions& options = context->options;
  ISOMER_ASSIGN_OR_RETURN(
      GridPlan made, PlanOfConfig(&context->graphs, options.training, config, &context->tables));
  if (options.grid->must_be_in_stripes && !HasStripes(made.plan.graph)) {
    return absl::NotFoundError(absl::StrCat("--context_order=striped: no causal attention of ",
                                            context->model.name,
                                            " on a sequence of its own is split in it, or not all "
                                            "that leads to it works in any order"));
  }
  context->SetOptions(&made.plan);
  config.SetOptions(&made.plan);
  if (made.plan.zero_bubble.splits()) {
    ISOMER_RETURN_IF_ERROR(SetSlotTimes(context->cost, &made.plan));
  }
  if (!options.grid->overlaps_gradients) made.plan.update.bucket_bytes = UpdateOptions::kOneBucket;
  bool takes_part = true;
  if (options.plan.empty()) {
    ISOMER_ASSIGN_OR_RETURN(const std::string deviation,
                            DeviationOf(context->step, context->cost, made.plan));
    const bool may_run = context->restrictions.Violations(made.mapped).empty() &&
                         context->restrictions.least_stages() == 1;
    takes_part = may_run && deviation.empty();
    if (!takes_part) context->baselines.ignoring.push_back(options.grid_name);
  }
  std::optional<Plan> kept;
  if (options.keep_baselines) kept = made.plan;
  const int entry = context->contest.Enter(std::move(made.plan), options.grid_name, takes_part);
  if (kept.has_value()) context->baselines.plan_of_entry[entry] = *std::move(kept);
  ISOMER_ASSIGN_OR_RETURN(const Prediction prediction,
                          PredictBaseline(options.grid_name, entry, context));
  // Of the form that counts.
  if (prediction == context->baselines.predictions.at(options.grid_name)) {
    context->baselines.misfit = std::move(made.misfit);
  }
  return absl::OkStatus();
}

// The configuration that a user asks for, with an order of micro-batches.
absl::Status EnterGridInOrder(PipelineSchedule schedule, SearchContext* context) {
  const OptimizeOptions& options = context->options;
  context->tables.set_options(context->BaseOptions());
  ISOMER_ASSIGN_OR_RETURN(ParallelConfig config,
                          ConfigOf(*options.grid, context->model, context->devices));
  config.schedule = schedule;
  if (ChunksOf(schedule) > 0) config.chunks = ChunksOf(schedule);
  if (!options.grid->update.has_value()) config.update = options.update.method;
  if (config.stages > 1) config.steps_between_flushes = options.steps_between_flushes;
  const absl::Status entered = EnterConfig(config, context);
  if (absl::IsNotFound(entered)) return absl::InvalidArgumentError(entered.message());
  ISOMER_RETURN_IF_ERROR(entered);
  if (!options.grid->any_context || config.degrees.context == 1) return absl::OkStatus();
  config.degrees.context_by_heads = true;
  context->tables.set_options(context->BaseOptions());
  const absl::Status by_heads = EnterConfig(config, context);
  return absl::IsNotFound(by_heads) ? absl::OkStatus() : by_heads;
}

// In the one that they say, or in all.
absl::Status EnterGridInItsOrders(SearchContext* context) {
  const std::optional<PipelineSchedule>& schedule = context->options.grid->schedule;
  if (schedule.has_value()) return EnterGridInOrder(*schedule, context);
  const int64_t chunks = context->options.grid->chunks;
  for (PipelineSchedule each : AllPipelineSchedules()) {
    if (chunks > 1 && ChunksOf(each) > 0 && ChunksOf(each) != chunks) continue;
    const absl::Status entered = EnterGridInOrder(each, context);
    // Not every model has every order: results may pass over a chunk of a V.
    if (each == PipelineSchedule::k1F1B || !absl::IsInvalidArgument(entered)) {
      ISOMER_RETURN_IF_ERROR(entered);
    }
  }
  return absl::OkStatus();
}

absl::Status EnterGrid(SearchContext* context, Submachine*) {
  ISOMER_RETURN_IF_ERROR(EnterGridInItsOrders(context));
  if (context->options.plan != kGrid || !context->Asks(kGrids)) return absl::OkStatus();
  ISOMER_ASSIGN_OR_RETURN(const std::vector<ConfigEstimate> estimates,
                          GridsOf(context, context->devices));
  if (!estimates.empty()) context->baselines.first_choice = estimates[0];
  return absl::OkStatus();
}

}  // namespace

absl::Status EnterBaseline(const std::string& name, SearchContext* context, Submachine* on) {
  context->tables.set_options(context->BaseOptions());
  auto mapped = MapBaseline(name, context->model.graph, &context->tables);
  if (absl::IsNotFound(mapped.status())) {
    if (context->options.plan != name) return absl::OkStatus();
    return absl::InvalidArgumentError(
        absl::StrCat("--plan=", name, ": ", mapped.status().message()));
  }
  ISOMER_RETURN_IF_ERROR(mapped.status());
  ISOMER_ASSIGN_OR_RETURN(const int entry, EnterMapping(*mapped, name, nullptr, context, on));
  context->baselines.entered.emplace_back(name, entry);
  return absl::OkStatus();
}

absl::Status PredictBaselines(SearchContext* context) {
  for (const auto& [name, entry] : std::exchange(context->baselines.entered, {})) {
    ISOMER_RETURN_IF_ERROR(PredictBaseline(name, entry, context).status());
  }
  return absl::OkStatus();
}

absl::StatusOr<Prediction> ConsiderAsBaseline(const MappedModel& mapped, const std::string& name,
                                              const ParallelConfig& config,
                                              SearchContext* context) {
  ISOMER_ASSIGN_OR_RETURN(const int entry, EnterMapping(mapped, name, &config, context, nullptr));
  return PredictBaseline(name, entry, context);
}

constinit const Proposer kDataParallelProposer = {
    kDataParallel, "every device has a share of the batch", Proposer::When::kFirst,
    IsWanted<kDataParallel>, Enter<kDataParallel>};

constinit const Proposer kZero3Proposer = {
    kZero3, "data parallelism with weights, gradients and states in parts", Proposer::When::kFirst,
    IsWanted<kZero3>, Enter<kZero3>};

constinit const Proposer kMegatronProposer = {
    kMegatron, "tensor parallel blocks within nodes, by hand", Proposer::When::kFirst,
    IsWanted<kMegatron>, Enter<kMegatron>};

constinit const Proposer kPublishedProposer = {
    kPublished, "published plans of networks like this one", Proposer::When::kFirst,
    IsWanted<kPublished>, Enter<kPublished>};

constinit const Proposer kGridProposer = {
    kGrid, "the parallel configuration that --plan=grid or --compare asks for",
    Proposer::When::kFirst,
    [](const SearchContext& context, const Submachine&) {
      return context.options.grid.has_value();
    },
    EnterGrid};

}  // namespace isomer
