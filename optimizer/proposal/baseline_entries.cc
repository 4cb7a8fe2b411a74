#include "optimizer/proposal/baseline_entries.h"

#include <optional>
#include <utility>
#include <vector>

#include "optimizer/proposal/baselines.h"
#include "optimizer/proposal/pipeline_plan.h"
#include "pcg/support/status_macros.h"

namespace isomer {

absl::Status BaselineEntries::EnterAll() {
  const std::string& wanted = run_.options.plan;
  std::vector<std::pair<std::string, int>> entered;
  for (const std::string name : {kSingleDevice, kDataParallel, kZero3, kMegatron, kExpert}) {
    if (name == kZero3 && !run_.options.training) continue;
    std::optional<Proposing> proposing;
    if (name != kSingleDevice) {
      ISOMER_ASSIGN_OR_RETURN(const Proposer proposer, ParseProposer(name));
      if (!run_.Asks(proposer) && wanted != name) continue;
      proposing.emplace(&run_.contest.ledger(), proposer);
    }
    run_.tables.set_options(run_.BaseOptions());
    auto mapped = MapBaseline(name, run_.model.graph, &run_.tables);
    if (absl::IsNotFound(mapped.status())) {
      if (wanted == name) return absl::InvalidArgumentError(mapped.status().message());
      continue;
    }
    ISOMER_RETURN_IF_ERROR(mapped.status());
    ISOMER_ASSIGN_OR_RETURN(const int entry, Enter(*mapped, name, nullptr));
    entered.emplace_back(name, entry);
  }
  // All of them are predicted at once.
  for (const auto& [name, entry] : entered) ISOMER_RETURN_IF_ERROR(Settle(name, entry).status());
  if (wanted != kPipeline) return absl::OkStatus();
  const Proposing proposing(&run_.contest.ledger(), Proposer::kPipeline);
  ISOMER_ASSIGN_OR_RETURN(Plan plan, PipelinePlan(run_.model, run_.tables.rules(), run_.cost,
                                                  run_.options.training, run_.options.pipeline));
  run_.SetOptions(&plan);
  if (run_.options.pipeline.stages > 1) {
    plan.update.steps_between_flushes = run_.options.steps_between_flushes;
  }
  ISOMER_ASSIGN_OR_RETURN(predictions_[kPipeline],
                          run_.contest.Consider(std::move(plan), kPipeline));
  return absl::OkStatus();
}

absl::StatusOr<Prediction> BaselineEntries::Consider(const MappedModel& mapped,
                                                     const std::string& name, const Grid* grid) {
  ISOMER_ASSIGN_OR_RETURN(const int entry, Enter(mapped, name, grid));
  return Settle(name, entry);
}

absl::StatusOr<int> BaselineEntries::Enter(const MappedModel& mapped, const std::string& name,
                                           const Grid* grid) {
  ISOMER_ASSIGN_OR_RETURN(Plan plan, run_.PlanOf(mapped, grid));
  if (name == kZero3) plan.update.method = UpdateMethod::kShardedWeights;
  const OptimizeOptions& options = run_.options;
  bool takes_part = options.plan == name ||
                    (options.plan.empty() &&
                     (options.choose_update_method || plan.update.method == options.update.method));
  // Of grids there are only those with the stages that calls are bound to.
  const bool keeps = run_.restrictions.Violations(mapped).empty() &&
                     (grid != nullptr || run_.restrictions.least_stages() == 1);
  if (name != kSingleDevice && !keeps) {
    ignoring_.push_back(name);
    takes_part &= !options.plan.empty();
  }
  takes_part &= name != kSingleDevice;
  const int entry = run_.contest.Enter(std::move(plan), name, takes_part);
  if (takes_part) run_.entered.emplace_back(entry, mapped);
  return entry;
}

absl::StatusOr<Prediction> BaselineEntries::Settle(const std::string& name, int entry) {
  ISOMER_ASSIGN_OR_RETURN(const Prediction prediction, run_.contest.PredictionOf(entry));
  if (name == kSingleDevice) {
    single_device_ = prediction;
    return prediction;
  }
  const auto [known, added] = predictions_.try_emplace(name, prediction);
  if (!added && run_.contest.Rank(prediction) < run_.contest.Rank(known->second))
    known->second = prediction;
  return prediction;
}

double BaselineEntries::BusyShare() const {
  return single_device_.step_us / static_cast<double>(run_.devices) / run_.contest.step_us();
}

}  // namespace isomer
