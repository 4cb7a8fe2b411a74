#include "optimizer/proposal/pipeline_plan.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "optimizer/mapping/cost_tables.h"
#include "optimizer/mapping/derivation.h"
#include "optimizer/proposal/baselines.h"
#include "optimizer/proposal/parallel_config.h"
#include "optimizer/sharding/batch_dims.h"
#include "pcg/schedule/order/pipeline.h"
#include "pcg/support/status_macros.h"

namespace isomer {
namespace {

constexpr int64_t kMostMicroBatches = 4096;

// One line that says what does not go together.
absl::Status CheckPipeline(const Model& model, int64_t devices, const PipelineOptions& options) {
  const auto [stages, micro_batches, chunks] = options;
  if (stages < 1 || devices % stages != 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("--stages=", stages, " does not divide ", devices, " devices"));
  }
  if (micro_batches < 1 || micro_batches > kMostMicroBatches) {
    return absl::InvalidArgumentError(
        absl::StrCat("--micro_batches=", micro_batches, ": there are 1 to ", kMostMicroBatches));
  }
  if (chunks < 1 || (chunks > 1 && micro_batches % stages != 0)) {
    return absl::InvalidArgumentError(absl::StrCat("--stages=", stages, "x", chunks,
                                                   ": --micro_batches=", micro_batches,
                                                   " is no multiple of the ", stages, " stages"));
  }
  if (micro_batches == 1 && stages == 1) return absl::OkStatus();
  if (MixesSamples(model.graph)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "--plan=pipeline: ", model.name, " needs all samples at once, and has no micro-batches"));
  }
  const int64_t data = devices / stages;
  if (BatchSize(model.graph) % (data * micro_batches) != 0) {
    return absl::InvalidArgumentError(absl::StrCat(
        "--micro_batches=", micro_batches, ": the batch of ", BatchSize(model.graph),
        " cannot be cut into ", micro_batches, " micro-batches on ", data, " devices each"));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<Plan> PipelinePlan(const Model& model, bool training, const PipelineOptions& options,
                                  CostTables* tables) {
  ISOMER_RETURN_IF_ERROR(CheckPipeline(model, tables->num_devices(), options));
  const ParallelConfig config{.devices = tables->num_devices(),
                              .stages = options.stages,
                              .micro_batches = options.micro_batches,
                              .chunks = options.chunks};
  const CostOptions saved = tables->options();
  tables->set_options(OptionsOfStage(config, saved, /*by_hand=*/true));
  ISOMER_ASSIGN_OR_RETURN(MappedModel mapped, MapTensorParallel(model.graph, 1, tables));
  const auto calls = static_cast<int64_t>(mapped.choices.size());
  if (config.num_chunks() > calls) {
    return absl::InvalidArgumentError(absl::StrCat(
        "--stages=", config.stages, config.chunks > 1 ? absl::StrCat("x", config.chunks) : "",
        ": the model has ", calls, " calls"));
  }
  ISOMER_RETURN_IF_ERROR(SpreadOverStages(config, {}, tables, &mapped));
  tables->set_options(saved);
  return DerivePlan(model, mapped, training, tables);
}

std::string PipelineSummary::ToString() const {
  std::string text = absl::StrFormat("%d stages, %d micro-batches", stages, micro_batches);
  absl::StrAppend(&text, !ordered     ? " that depend on each other: in no order"
                         : chunks > 1 ? absl::StrFormat(" (1F1B, %d chunks a stage)", chunks)
                                      : " (1F1B)");
  if (steps > 1) {
    absl::StrAppendFormat(&text, ", drained after %d steps (2BW: gradients are a step late)",
                          steps);
  }
  if (ordered) {
    absl::StrAppendFormat(&text, "; bubble of equal stages %.1f %% of the step",
                          100 * bubble_share);
  }
  return text + absl::StrFormat("; devices idle %.1f %% of it, as simulated", 100 * idle_share);
}

std::optional<PipelineSummary> SummaryOfPipeline(const Schedule& schedule,
                                                 const Simulation& simulation) {
  if (schedule.num_moments == 1) return std::nullopt;
  PipelineSummary summary;
  const PipelineStages stages = StagesOf(schedule);
  summary.stages = stages.num_stages;
  summary.chunks = stages.num_chunks;
  summary.steps = schedule.num_steps();
  summary.micro_batches = schedule.num_moments / summary.steps;
  summary.ordered = !MixesMicroBatches(schedule);
  summary.bubble_share =
      static_cast<double>(summary.stages - 1) /
      static_cast<double>(summary.chunks * schedule.num_moments + summary.stages - 1);
  double busy_us = 0;
  for (int32_t t = 0; t < simulation.tasks.size(); ++t) {
    if (IsCommunication(schedule.tasks[t].kind)) continue;
    busy_us += MicrosecondsOf(simulation.tasks.duration(t));
  }
  const double all_us =
      simulation.step_us * static_cast<double>(summary.steps * schedule.num_represented());
  summary.idle_share = all_us > 0 ? 1 - busy_us / all_us : 0;
  return summary;
}

}  // namespace isomer
