#include "optimizer/page/step_bars.h"

#include <utility>

#include "optimizer/comparison/plan_summary.h"
#include "optimizer/proposal/baselines.h"
#include "pcg/support/status_macros.h"

namespace isomer {
namespace {

StepParts PartsOf(const PlanSummary& plan) {
  StepParts parts;
  if (plan.step_us <= 0) return parts;
  parts.compute = plan.compute_us / plan.step_us;
  for (const auto& [kind, us] : plan.exposed_us) parts.exposed_communication += us / plan.step_us;
  parts.bubble = plan.bubble_us / plan.step_us;
  parts.idle = plan.idle_us / plan.step_us;
  return parts;
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

absl::StatusOr<std::vector<StepBar>> StepBarsOf(const OptimizeResult& result, const Report& report,
                                                const CostModel& cost,
                                                BaselineSummaries* baselines) {
  const Plan& plan = result.plan;
  ISOMER_ASSIGN_OR_RETURN(const PlanSummary summary, SummaryOf("plan", result, report.explanation,
                                                               report.times, cost.machine()));
  std::vector<StepBar> bars;
  bars.push_back({.name = summary.name,
                  .kind = StepBar::Kind::kPlan,
                  .step_us = plan.predicted_step_us,
                  .peak_bytes = plan.predicted_peak_bytes,
                  .fits = result.fits,
                  .parts = PartsOf(summary)});
  for (const auto& [name, prediction] : result.baselines) {
    if (prediction == kNotSimulated) continue;
    StepBar bar{.name = name,
                .kind = IsBaseline(name) ? StepBar::Kind::kBaseline : StepBar::Kind::kOwn,
                .step_us = prediction.step_us,
                .peak_bytes = prediction.peak_bytes,
                .fits = prediction.peak_bytes <= cost.machine().memory_bytes()};
    const absl::StatusOr<PlanSummary> parts = baselines->Of(name);
    if (parts.ok()) bar.parts = PartsOf(*parts);
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
