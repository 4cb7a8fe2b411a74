#include "optimizer/proposal/joint_search.h"

#include <algorithm>
#include <iterator>
#include <optional>
#include <utility>

#include "optimizer/proposal/search_context.h"
#include "pcg/support/status_macros.h"

namespace isomer {
namespace {

// How much of the synchronisation of gradients the tables count.
constexpr double kWeights[] = {1, 0.5, 0.25, 0.1, 0};
constexpr int kLast = std::size(kWeights) - 1;

// Enters what is found into the contest; nothing: there was no time.
absl::StatusOr<std::optional<int>> SearchAt(int weight, SearchContext* context, Submachine* on) {
  const CostOptions options = context->OptionsOn(*on, kWeights[weight]);
  ISOMER_ASSIGN_OR_RETURN(std::optional<MappedModel> found, context->Search(options));
  if (!found.has_value()) return std::nullopt;
  ISOMER_ASSIGN_OR_RETURN(Plan plan, context->PlanOf(*found));
  const int entry = context->contest.Enter(std::move(plan), kFound);
  on->entered.emplace_back(entry, *std::move(found));
  return entry;
}

bool IsSearched(const SearchContext&, const Submachine& on) { return on.is_searched; }

absl::Status SearchOnce(SearchContext* context, Submachine* on) {
  ISOMER_ASSIGN_OR_RETURN(on->first_search, SearchAt(0, context, on));
  return absl::OkStatus();
}

// Inference has no gradients to synchronise.
bool WeighsSynchronisation(const SearchContext& context, const Submachine& on) {
  return on.first_search.has_value() && context.options.training &&
         !Simulates(context.options.strategy);
}

// By the tables, a plan's time is linear in the weight, so that one that is best at two weights
// is best at those between.
absl::Status SearchBetween(int low, const Prediction& at_low, int high, const Prediction& at_high,
                           SearchContext* context, Submachine* on) {
  if (high - low < 2 || at_low == at_high || context->contest.PredictionsAreSlow()) {
    return absl::OkStatus();
  }
  const int middle = (low + high) / 2;
  ISOMER_ASSIGN_OR_RETURN(const std::optional<int> entry, SearchAt(middle, context, on));
  if (!entry.has_value()) return absl::OkStatus();
  ISOMER_ASSIGN_OR_RETURN(const Prediction at_middle, context->contest.PredictionOf(*entry));
  ISOMER_RETURN_IF_ERROR(SearchBetween(low, at_low, middle, at_middle, context, on));
  return SearchBetween(middle, at_middle, high, at_high, context, on);
}

// The smallest weight, then those between it and the largest if they differ.
absl::Status SearchWithWeights(SearchContext* context, Submachine* on) {
  Contest& contest = context->contest;
  ISOMER_ASSIGN_OR_RETURN(const Prediction first, contest.PredictionOf(*on->first_search));
  if (!on->is_whole && !context->IsNearBest(first.step_us)) return absl::OkStatus();
  if (contest.PredictionsAreSlow()) return absl::OkStatus();
  ISOMER_ASSIGN_OR_RETURN(const std::optional<int> entry, SearchAt(kLast, context, on));
  if (!entry.has_value()) return absl::OkStatus();
  ISOMER_ASSIGN_OR_RETURN(const Prediction last, contest.PredictionOf(*entry));
  const double least_bytes = static_cast<double>(std::min(first.peak_bytes, last.peak_bytes));
  const double memory_bytes = static_cast<double>(context->cost.machine().memory_bytes());
  if (least_bytes > context->policy().far_too_large * memory_bytes) return absl::OkStatus();
  return SearchBetween(0, first, kLast, last, context, on);
}

}  // namespace

constinit const Proposer kJointSearch = {"joint_search", "rewrites and mappings as one space",
                                         Proposer::When::kSearch, IsSearched, SearchOnce};

constinit const Proposer kSyncWeights = {
    "sync_weights",
    "the joint search where less of the gradients' synchronisation counts, as it overlaps",
    Proposer::When::kSearch, WeighsSynchronisation, SearchWithWeights};

}  // namespace isomer
