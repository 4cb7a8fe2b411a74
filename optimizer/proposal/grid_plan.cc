#include "optimizer/proposal/grid_plan.h"

#include <algorithm>
#include <initializer_list>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "optimizer/proposal/grid_mapping.h"
#include "optimizer/proposal/striped_order.h"
#include "optimizer/sharding/batch_dims.h"
#include "pcg/schedule/order/pipeline.h"
#include "pcg/support/status_macros.h"

namespace isomer {
namespace {

// "--tensor=8 x --pipeline=4".
std::string ProductOf(std::initializer_list<std::pair<const char*, int64_t>> flags) {
  std::vector<std::string> parts;
  for (const auto& [flag, degree] : flags) {
    if (degree > 1) parts.push_back(absl::StrCat("--", flag, "=", degree));
  }
  return absl::StrJoin(parts, " x ");
}

// That a schedule suits the pipeline.
absl::Status CheckScheduleOf(const GridRequest& request) {
  if (request.schedule == PipelineSchedule::k1F1B) return absl::OkStatus();
  const std::string flag = absl::StrCat("--schedule=", request.schedule.has_value()
                                                           ? PipelineScheduleName(*request.schedule)
                                                           : kAutoSchedule);
  if (request.stages == 1) {
    return absl::InvalidArgumentError(absl::StrCat(flag, " is for --pipeline of 2 stages or more"));
  }
  const int64_t chunks = request.schedule.has_value() ? ChunksOf(*request.schedule) : 0;
  if (chunks > 0 && request.chunks != 1 && request.chunks != chunks) {
    return absl::InvalidArgumentError(absl::StrCat(
        flag, " is for --pipeline=", request.stages, " or ", request.stages, "x", chunks, ", and ",
        request.stages, "x", request.chunks, " has ", request.chunks, " chunks"));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<ParallelConfig> ConfigOf(const GridRequest& request, const Model& model,
                                        int64_t devices) {
  const auto& [degrees, any_context, stages, chunks, micro_batch_size, recomputation, update,
               overlaps, schedule, must_be_in_stripes] = request;
  for (const auto& [flag, degree] :
       std::initializer_list<std::pair<const char*, int64_t>>{{"tensor", degrees.tensor},
                                                              {"context", degrees.context},
                                                              {"expert", degrees.expert},
                                                              {"pipeline", stages},
                                                              {"pipeline", chunks}}) {
    if (degree < 1 || degree > kMostDegree) {
      return absl::InvalidArgumentError(absl::StrCat("--", flag, ": degrees are 1 to ", kMostDegree,
                                                     ", and ", degree, " is none"));
    }
  }
  const int64_t others = degrees.tensor * degrees.context * stages;
  if (devices % others != 0) {
    return absl::InvalidArgumentError(absl::StrCat(
        ProductOf({{"tensor", degrees.tensor}, {"context", degrees.context}, {"pipeline", stages}}),
        ": ", others, " does not divide ", devices, " devices"));
  }
  const int64_t data = devices / others;
  if (data % degrees.expert != 0) {
    return absl::InvalidArgumentError(absl::StrCat(
        "--expert=", degrees.expert, " does not divide the ", data, " data-parallel devices"));
  }
  ParallelConfig config{.devices = devices,
                        .stages = stages,
                        .degrees = degrees,
                        .update = update.value_or(UpdateMethod::kAllReduce),
                        .recomputation = recomputation,
                        .chunks = chunks,
                        .schedule = schedule.value_or(PipelineSchedule::k1F1B)};
  config.degrees.in_stripes &= HasCausalAttention(model.graph);
  if (const int64_t of_schedule = ChunksOf(config.schedule); of_schedule > 0) {
    config.chunks = of_schedule;
  }
  ISOMER_RETURN_IF_ERROR(CheckScheduleOf(request));
  const int64_t batch = BatchSize(model.graph);
  if (micro_batch_size < 0 || micro_batch_size > batch) {
    return absl::InvalidArgumentError(absl::StrCat("--micro_batch_size=", micro_batch_size,
                                                   ": it is 1 to the batch of ", batch, ", or 0"));
  }
  if (micro_batch_size > 0 || stages > 1) {
    const int64_t samples = data * std::max<int64_t>(1, micro_batch_size);
    if (batch % samples != 0) {
      return absl::InvalidArgumentError(absl::StrCat("--micro_batch_size=", samples / data, " on ",
                                                     data, " data-parallel devices: ", samples,
                                                     " does not divide the batch of ", batch));
    }
    config.micro_batches = batch / samples;
  }
  if (config.micro_batches > kMostMicroBatches) {
    return absl::InvalidArgumentError(absl::StrCat(config.micro_batches,
                                                   " micro-batches: there are 1 to ",
                                                   kMostMicroBatches, " (--micro_batch_size)"));
  }
  if ((config.micro_batches > 1 || stages > 1) && MixesSamples(model.graph)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "--plan=grid: ", model.name, " needs all samples at once, and has no micro-batches"));
  }
  return config;
}

absl::StatusOr<GridPlan> PlanOfConfig(GridGraph* graphs, bool training,
                                      const ParallelConfig& config, CostTables* tables) {
  const CostOptions saved = tables->options();
  tables->set_options(OptionsOfStage(config, saved, /*by_hand=*/true));
  GridPlan result;
  ISOMER_ASSIGN_OR_RETURN(result.mapped, graphs->Map(config.degrees, tables, &result.misfit));
  const auto calls = static_cast<int64_t>(result.mapped.choices.size());
  if (config.num_chunks() > calls) {
    return absl::InvalidArgumentError(absl::StrCat(
        "--pipeline=", config.stages, config.chunks > 1 ? absl::StrCat("x", config.chunks) : "",
        ": the model has ", calls, " calls"));
  }
  ISOMER_RETURN_IF_ERROR(SpreadOverStages(config, {}, tables, &result.mapped));
  tables->set_options(saved);
  ISOMER_ASSIGN_OR_RETURN(result.plan,
                          DerivePlan(graphs->model(), result.mapped, training, tables));
  return result;
}

std::string PipelineSummary::ToString() const {
  std::string text = absl::StrFormat("%d stages, %d micro-batches", stages, micro_batches);
  if (!ordered) {
    absl::StrAppend(&text, " that depend on each other: in no order");
  } else {
    absl::StrAppend(&text, " (", OrderText(shape));
    if (chunks > 1) absl::StrAppend(&text, ", ", chunks, " chunks a stage");
    if (chunks > 1 && !shape.zero_bubble.splits() && round != stages) {
      absl::StrAppend(&text, ", rounds of up to ", round);
    }
    absl::StrAppend(&text, ")");
  }
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
  PipelineShape shape = ShapeOf(schedule, StagesOf(schedule));
  shape.num_moments = simulation.micro_batches;
  summary.stages = shape.num_stages;
  summary.chunks = shape.num_chunks;
  summary.steps = shape.num_steps;
  summary.micro_batches = shape.num_moments;
  summary.round = shape.LargestRound();
  summary.ordered = !MixesMicroBatches(schedule);
  summary.shape = shape;
  summary.bubble_share = shape.IdleShare();
  double busy_us = 0;
  for (int32_t t = 0; t < simulation.tasks.size(); ++t) {
    if (IsCommunication(schedule.tasks[t].kind)) continue;
    busy_us +=
        simulation.Times(schedule.tasks[t].moment) * MicrosecondsOf(simulation.tasks.duration(t));
  }
  const double all_us =
      simulation.step_us * static_cast<double>(summary.steps * schedule.num_represented());
  summary.idle_share = all_us > 0 ? 1 - busy_us / all_us : 0;
  return summary;
}

}  // namespace isomer
