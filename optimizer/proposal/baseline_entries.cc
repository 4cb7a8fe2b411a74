#include "optimizer/proposal/baseline_entries.h"

#include <optional>
#include <utility>
#include <vector>

#include "optimizer/proposal/baselines.h"
#include "optimizer/proposal/pipeline_plan.h"
#include "optimizer/proposal/search_context.h"
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
  return context->baselines.Enter(kName, on);
}

}  // namespace

absl::Status BaselineEntries::Enter(const std::string& name, Submachine* on) {
  context_.tables.set_options(context_.BaseOptions());
  auto mapped = MapBaseline(name, context_.model.graph, &context_.tables);
  if (absl::IsNotFound(mapped.status())) {
    if (context_.options.plan != name) return absl::OkStatus();
    return absl::InvalidArgumentError(mapped.status().message());
  }
  ISOMER_RETURN_IF_ERROR(mapped.status());
  ISOMER_ASSIGN_OR_RETURN(const int entry, Enter(*mapped, name, nullptr, on));
  entered_.emplace_back(name, entry);
  return absl::OkStatus();
}

absl::Status BaselineEntries::Settle() {
  for (const auto& [name, entry] : std::exchange(entered_, {})) {
    ISOMER_RETURN_IF_ERROR(Settle(name, entry).status());
  }
  return absl::OkStatus();
}

absl::Status BaselineEntries::EnterPipeline() {
  const OptimizeOptions& options = context_.options;
  context_.tables.set_options(context_.BaseOptions());
  ISOMER_ASSIGN_OR_RETURN(Plan plan, PipelinePlan(context_.model, options.training,
                                                  options.pipeline, &context_.tables));
  context_.SetOptions(&plan);
  if (options.pipeline.stages > 1) {
    plan.update.steps_between_flushes = options.steps_between_flushes;
  }
  ISOMER_ASSIGN_OR_RETURN(predictions_[kPipeline],
                          context_.contest.Consider(std::move(plan), kPipeline));
  return absl::OkStatus();
}

absl::StatusOr<Prediction> BaselineEntries::Consider(const MappedModel& mapped,
                                                     const std::string& name,
                                                     const ParallelConfig* config) {
  ISOMER_ASSIGN_OR_RETURN(const int entry, Enter(mapped, name, config, nullptr));
  return Settle(name, entry);
}

absl::StatusOr<int> BaselineEntries::Enter(const MappedModel& mapped, const std::string& name,
                                           const ParallelConfig* config, Submachine* on) {
  ISOMER_ASSIGN_OR_RETURN(Plan plan, context_.PlanOf(mapped, config));
  if (name == kZero3) plan.update.method = UpdateMethod::kShardedWeights;
  const OptimizeOptions& options = context_.options;
  bool takes_part = options.plan == name ||
                    (options.plan.empty() &&
                     (options.choose_update_method || plan.update.method == options.update.method));
  // Of configurations there are only those with the stages that calls are bound to.
  const bool keeps = context_.restrictions.Violations(mapped).empty() &&
                     (config != nullptr || context_.restrictions.least_stages() == 1);
  if (name != kSingleDevice && !keeps) {
    ignoring_.push_back(name);
    takes_part &= !options.plan.empty();
  }
  takes_part &= name != kSingleDevice;
  const int entry = context_.contest.Enter(std::move(plan), name, takes_part);
  if (takes_part && on != nullptr) on->entered.emplace_back(entry, mapped);
  return entry;
}

absl::StatusOr<Prediction> BaselineEntries::Settle(const std::string& name, int entry) {
  ISOMER_ASSIGN_OR_RETURN(const Prediction prediction, context_.contest.PredictionOf(entry));
  if (name == kSingleDevice) {
    single_device_ = prediction;
    return prediction;
  }
  const auto [known, added] = predictions_.try_emplace(name, prediction);
  if (!added && context_.contest.Rank(prediction) < context_.contest.Rank(known->second))
    known->second = prediction;
  return prediction;
}

double BaselineEntries::BusyShare() const {
  return single_device_.step_us / static_cast<double>(context_.devices) /
         context_.contest.step_us();
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

constinit const Proposer kPipelineProposer = {
    kPipeline, "stages of equal work, where --plan=pipeline asks for them", Proposer::When::kFirst,
    [](const SearchContext& context, const Submachine&) {
      return context.options.plan == kPipeline;
    },
    [](SearchContext* context, Submachine*) { return context->baselines.EnterPipeline(); }};

}  // namespace isomer
