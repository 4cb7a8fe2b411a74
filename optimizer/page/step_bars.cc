#include "optimizer/page/step_bars.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "absl/strings/string_view.h"
#include "optimizer/proposal/baselines.h"
#include "pcg/support/status_macros.h"

namespace isomer {
namespace {

absl::StatusOr<StepParts> PartsOfPlan(Plan plan, const CostModel& cost) {
  ISOMER_ASSIGN_OR_RETURN(const Simulation simulation, PredictPlan(cost, &plan));
  ISOMER_ASSIGN_OR_RETURN(const LoweredPlan lowered, LowerForSimulation(cost.machine(), plan));
  const Explanation explanation = Explain(cost, lowered.mapped.graph, lowered.schedule, simulation);
  return PartsOf(explanation.shares, simulation.step_us,
                 SummaryOfPipeline(lowered.schedule, simulation));
}

bool IsOwn(absl::string_view name) {
  return std::find(std::begin(kBaselines), std::end(kBaselines), name) == std::end(kBaselines);
}

const char* NameOfKind(StepBar::Kind kind) {
  switch (kind) {
    case StepBar::Kind::kPlan:
      return "plan";
    case StepBar::Kind::kBaseline:
      return "baseline";
    case StepBar::Kind::kOwn:
      return "own";
    case StepBar::Kind::kBound:
      return "bound";
  }
  return "?";
}

}  // namespace

StepParts PartsOf(const StepShares& shares, double step_us,
                  const std::optional<PipelineSummary>& pipeline) {
  StepParts parts;
  if (step_us <= 0) return parts;
  parts.compute = shares.compute_us / step_us;
  parts.exposed_communication = shares.exposed_us() / step_us;
  const double idle = shares.idle_us / step_us;
  const bool has_bubble = pipeline.has_value() && pipeline->ordered;
  parts.bubble = has_bubble ? std::min(idle, pipeline->bubble_share) : 0;
  parts.idle = idle - parts.bubble;
  return parts;
}

std::vector<StepBar> StepBarsOf(const OptimizeResult& result, const Explanation& explanation,
                                const CostModel& cost) {
  const Plan& plan = result.plan;
  std::vector<StepBar> bars;
  bars.push_back(
      {.name = "plan",
       .kind = StepBar::Kind::kPlan,
       .step_us = plan.predicted_step_us,
       .peak_bytes = plan.predicted_peak_bytes,
       .fits = result.fits,
       .parts = PartsOf(explanation.shares, result.simulation.step_us, result.pipeline)});
  for (const auto& [name, prediction] : result.baselines) {
    if (prediction == kNotSimulated) continue;
    StepBar bar{.name = name,
                .kind = IsOwn(name) ? StepBar::Kind::kOwn : StepBar::Kind::kBaseline,
                .step_us = prediction.step_us,
                .peak_bytes = prediction.peak_bytes,
                .fits = prediction.peak_bytes <= cost.machine().memory_bytes()};
    if (const auto kept = result.baseline_plans.find(name); kept != result.baseline_plans.end()) {
      const absl::StatusOr<StepParts> parts = PartsOfPlan(kept->second, cost);
      if (parts.ok()) bar.parts = *parts;
    }
    bars.push_back(std::move(bar));
  }
  if (result.bound.has_value()) {
    bars.push_back(
        {.name = "lower bound", .kind = StepBar::Kind::kBound, .step_us = result.bound->step_us});
  }
  return bars;
}

Json BarsJson(const std::vector<StepBar>& bars) {
  Json json = Json::EmptyArray();
  for (const StepBar& bar : bars) {
    Json one;
    one["name"] = bar.name;
    one["kind"] = NameOfKind(bar.kind);
    one["step_us"] = bar.step_us;
    if (bar.kind != StepBar::Kind::kBound) {
      one["peak_bytes"] = bar.peak_bytes;
      one["fits"] = bar.fits;
    }
    if (bar.parts.has_value()) {
      one["parts"]["compute"] = bar.parts->compute;
      one["parts"]["exposed_communication"] = bar.parts->exposed_communication;
      one["parts"]["bubble"] = bar.parts->bubble;
      one["parts"]["idle"] = bar.parts->idle;
    }
    json.Append(std::move(one));
  }
  return json;
}

}  // namespace isomer
