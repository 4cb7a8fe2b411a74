#include "optimizer/comparison/why.h"

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "optimizer/comparison/plan_difference.h"
#include "optimizer/comparison/step_decision.h"
#include "optimizer/comparison/turning_point.h"
#include "optimizer/proposal/baselines.h"
#include "pcg/support/status_macros.h"

namespace isomer {
namespace {

// Of the computation: splits of less are "otherwise".
constexpr double kShownSplit = 0.01;
// Blocks that are named for a split, and blocks that names are cut to.
constexpr size_t kNamedBlocks = 4;
constexpr int kBlocksOfSplits = 16;

// The other plans that are worth a word, the next best last: data parallelism, what the user runs,
// the fastest that fits. What the plan itself was made of is none.
std::vector<std::string> OthersOf(const OptimizeResult& result, const Machine& machine) {
  std::vector<std::string> others;
  std::optional<std::string> next;
  for (const auto& [name, prediction] : result.baselines) {
    if (!result.baseline_plans.contains(name) || name == result.origin) continue;
    const bool fits = prediction.peak_bytes <= machine.memory_bytes();
    const bool is_nearer =
        fits && (!next.has_value() || prediction.step_us < result.baselines.at(*next).step_us);
    if (is_nearer) next = name;
    if (name == kDataParallel || !IsBaseline(name)) others.push_back(name);
  }
  if (next.has_value()) {
    std::erase(others, *next);
    others.push_back(*next);
  }
  return others;
}

}  // namespace

std::string SplitsText(const PlanSummary& plan) {
  const std::map<std::string, BlockSummary> blocks = BlocksOf({&plan}, kBlocksOfSplits)[0];
  std::map<std::string, double> us_of_split;
  double total_us = 0;
  for (const auto& [name, block] : blocks) {
    for (const auto& [split, us] : block.splits_us) {
      us_of_split[split] += us;
      total_us += us;
    }
  }
  std::vector<std::pair<std::string, double>> splits(us_of_split.begin(), us_of_split.end());
  absl::c_stable_sort(splits, [](const auto& a, const auto& b) { return a.second > b.second; });
  std::string text;
  double rest_us = 0;
  for (size_t s = 0; s < splits.size(); ++s) {
    const auto& [split, us] = splits[s];
    if (us < kShownSplit * total_us) {
      rest_us += us;
      continue;
    }
    absl::StrAppendFormat(&text, "  %3.0f %%  %s", 100 * us / total_us, split);
    std::vector<std::pair<double, std::string>> in;
    for (const auto& [name, block] : blocks) {
      const auto found = block.splits_us.find(split);
      if (found != block.splits_us.end()) in.emplace_back(-found->second, name);
    }
    absl::c_sort(in);
    std::vector<std::string> names;
    for (const auto& [negative_us, name] : in) {
      if (names.size() < kNamedBlocks) names.push_back(name);
    }
    if (in.size() > names.size()) {
      names.push_back(absl::StrCat(in.size() - names.size(), " more"));
    }
    if (s > 0) absl::StrAppend(&text, " (", absl::StrJoin(names, ", "), ")");
    text += "\n";
  }
  if (rest_us > 0) {
    absl::StrAppendFormat(&text, "  %3.1g %%  otherwise\n", 100 * rest_us / total_us);
  }
  return text;
}

absl::StatusOr<Why> WhyOf(const OptimizeResult& result, const Report& report, const CostModel& cost,
                          BaselineSummaries* baselines) {
  ISOMER_ASSIGN_OR_RETURN(const PlanSummary plan, SummaryOf("this plan", result, report.explanation,
                                                            report.times, cost.machine()));
  Why why;
  why.text = absl::StrCat("Why this plan\n\nComputation is split in\n", SplitsText(plan));
  why.json["against"] = Json::EmptyObject();
  const std::vector<std::string> others = OthersOf(result, cost.machine());
  for (const std::string& name : others) {
    ISOMER_ASSIGN_OR_RETURN(const PlanSummary other, baselines->Of(name));
    absl::StrAppend(&why.text, "\nAgainst ", name, ": ", other.headline, "\n",
                    DifferenceText(plan, other));
    why.json["against"][name] = DifferenceJson(plan, other);
  }
  ISOMER_ASSIGN_OR_RETURN(const std::vector<StepDecision> decisions,
                          StepDecisionsOf(result.plan, cost));
  if (!decisions.empty()) {
    absl::StrAppend(&why.text, "\nDecisions about the step, and the same plan without each\n",
                    StepDecisionsText(decisions, result.plan));
  }
  why.json["decisions"] = StepDecisionsJson(decisions);
  if (others.empty() || cost.profile() != nullptr) return why;
  ISOMER_ASSIGN_OR_RETURN(
      const std::vector<TurningPoint> points,
      TurningPointsOf(result.plan, result.baseline_plans.at(others.back()), cost));
  absl::StrAppend(&why.text, "\nWhat would have to change for ", others.back(), " to win\n",
                  TurningPointsText(points, plan.name, others.back()));
  why.json["turning_points"] = TurningPointsJson(points);
  return why;
}

}  // namespace isomer
