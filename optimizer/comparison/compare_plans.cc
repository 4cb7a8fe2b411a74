#include "optimizer/comparison/compare_plans.h"

#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "optimizer/comparison/plan_difference.h"
#include "optimizer/comparison/plan_summary.h"
#include "optimizer/comparison/turning_point.h"
#include "pcg/ir/plan.h"
#include "pcg/support/status_macros.h"

namespace isomer {
namespace {

struct PricedPlan {
  Plan plan;
  PlanSummary summary;
};

absl::StatusOr<PricedPlan> ReadCompared(const std::string& file, const CostModel& cost) {
  PricedPlan read;
  ISOMER_ASSIGN_OR_RETURN(read.plan, LoadPlan(file));
  // Of a machine with fewer or other devices it is another plan.
  absl::StatusOr<PlanSummary> summary = SummaryOf(file, read.plan, cost);
  if (!summary.ok()) {
    return absl::Status(summary.status().code(),
                        absl::StrCat(file, ": ", summary.status().message()));
  }
  read.summary = *std::move(summary);
  read.plan.predicted_step_us = read.summary.step_us;
  return read;
}

std::string UnlikeText(const Plan& a, const Plan& b) {
  if (a.mode != b.mode) return absl::StrCat("one is of ", a.mode, ", the other of ", b.mode);
  if (a.model.graph.StructuralHash() == b.model.graph.StructuralHash()) return "";
  return absl::StrCat("they are plans of different models (", a.model.name, " and ", b.model.name,
                      ")");
}

absl::Status AddTurningPoints(const PricedPlan& faster, const PricedPlan& slower,
                              const CostModel& cost, ComparedPlans* comparison) {
  ISOMER_ASSIGN_OR_RETURN(const std::vector<TurningPoint> points,
                          TurningPointsOf(faster.plan, slower.plan, cost));
  absl::StrAppend(&comparison->text, "\nWhat would have to change for ", slower.summary.name,
                  " to win\n", TurningPointsText(points, faster.summary.name, slower.summary.name));
  comparison->json["turning_points"] = TurningPointsJson(points);
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<ComparedPlans> ComparePlans(const std::string& a, const std::string& b,
                                           const CostModel& cost) {
  ISOMER_ASSIGN_OR_RETURN(const PricedPlan first, ReadCompared(a, cost));
  ISOMER_ASSIGN_OR_RETURN(const PricedPlan second, ReadCompared(b, cost));
  const PlanSummary &of_a = first.summary, &of_b = second.summary;
  ComparedPlans comparison{
      .note = UnlikeText(first.plan, second.plan),
      .text = absl::StrCat(a, ": ", of_a.headline, "\n", b, ": ", of_b.headline, "\n\nOn ",
                           cost.machine().ToString(), ", ", a, " is ", DifferenceText(of_a, of_b),
                           "\nSide by side\n", SideBySideText(of_a, of_b)),
      .json = DifferenceJson(of_a, of_b)};
  if (cost.profile() == nullptr && of_a.step_us != of_b.step_us) {
    const bool a_wins = of_a.step_us < of_b.step_us;
    ISOMER_RETURN_IF_ERROR(
        AddTurningPoints(a_wins ? first : second, a_wins ? second : first, cost, &comparison));
  }
  return comparison;
}

}  // namespace isomer
