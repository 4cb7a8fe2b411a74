#include "optimizer/proposal/splices.h"

#include <algorithm>
#include <cstdint>
#include <map>

#include "optimizer/proposal/search_context.h"
#include "pcg/support/status_macros.h"

namespace isomer {
namespace {

// Calls that have a choice, in the graph's order.
std::vector<NodeId> ChosenCalls(const MappedModel& mapped) {
  std::vector<NodeId> calls;
  for (NodeId id : mapped.graph.TopologicalOrder()) {
    if (mapped.choices.contains(id)) calls.push_back(id);
  }
  return calls;
}

// Of `calls`, the first `cut` as in `before`, the others as in `behind`.
MappedModel Spliced(const MappedModel& before, const MappedModel& behind,
                    const std::vector<NodeId>& calls, size_t cut) {
  MappedModel spliced = behind;
  for (size_t i = 0; i < cut; ++i) spliced.choices[calls[i]] = before.choices.at(calls[i]);
  return spliced;
}

bool SameGraph(const MappedModel& a, const MappedModel& b) {
  return a.steps == b.steps && a.choices.size() == b.choices.size() &&
         std::equal(a.choices.begin(), a.choices.end(), b.choices.begin(),
                    [](const auto& x, const auto& y) { return x.first == y.first; });
}

bool SameChoices(const MappedModel& a, const MappedModel& b) {
  return std::equal(a.choices.begin(), a.choices.end(), b.choices.begin(),
                    [](const auto& x, const auto& y) {
                      return x.second.axes == y.second.axes && x.second.start == y.second.start;
                    });
}

absl::Status SplicePair(const MappedModel& before, const MappedModel& behind, double best_us,
                        const SearchPolicy& policy, const Deadline& deadline,
                        const ConsiderMapping& consider) {
  const int64_t parts = policy.fine_splice_cuts;
  const int64_t coarse = std::max<int64_t>(1, parts / policy.splice_cuts);
  const std::vector<NodeId> calls = ChosenCalls(before);
  std::map<int64_t, double> step_us;  // by the cut
  const auto splice_at = [&](int64_t part) -> absl::Status {
    if (part <= 0 || part >= parts || step_us.contains(part)) return absl::OkStatus();
    if (deadline.Reached().has_value()) return absl::OkStatus();
    const size_t cut = calls.size() * part / parts;
    ISOMER_ASSIGN_OR_RETURN(const Prediction found, consider(Spliced(before, behind, calls, cut)));
    step_us[part] = found.step_us;
    return absl::OkStatus();
  };
  for (int64_t part = coarse; part < parts; part += coarse) {
    ISOMER_RETURN_IF_ERROR(splice_at(part));
  }
  for (int64_t width = coarse / 2; width >= 1 && !step_us.empty(); width /= 2) {
    const auto best =
        std::min_element(step_us.begin(), step_us.end(),
                         [](const auto& a, const auto& b) { return a.second < b.second; });
    if (best->second > policy.very_near_best * best_us) break;
    const int64_t part = best->first;
    ISOMER_RETURN_IF_ERROR(splice_at(part - width));
    ISOMER_RETURN_IF_ERROR(splice_at(part + width));
  }
  return absl::OkStatus();
}

// Splices of what is far too large are, too.
bool HasTwo(const SearchContext& context, const Submachine& on) {
  return on.mappings.size() + on.spread.size() > 1 && !on.is_far_too_large &&
         context.IsNearBest(on.best.us) && !context.contest.PredictionsAreSlow();
}

absl::Status Splice(SearchContext* context, Submachine* on) {
  std::vector<MappedModel> mappings;
  for (const auto& [weight, mapping] : on->mappings) mappings.push_back(mapping);
  mappings.insert(mappings.end(), on->spread.begin(), on->spread.end());
  return ConsiderSplices(
      mappings, on->best.us, context->policy(), context->deadline,
      [&](const MappedModel& mapped) { return context->ConsiderIfAllowed(mapped, on); });
}

}  // namespace

absl::Status ConsiderSplices(const std::vector<MappedModel>& mappings, double best_us,
                             const SearchPolicy& policy, const Deadline& deadline,
                             const ConsiderMapping& consider) {
  for (size_t a = 0; a + 1 < mappings.size(); ++a) {
    // The last of the same graph, which synchronises most; those in between differ less.
    size_t b = mappings.size() - 1;
    while (b > a && !SameGraph(mappings[a], mappings[b])) --b;
    if (b == a || SameChoices(mappings[a], mappings[b])) continue;
    return SplicePair(mappings[a], mappings[b], best_us, policy, deadline, consider);
  }
  return absl::OkStatus();
}

constinit const Proposer kSplices = {
    "splices", "the front of one mapping, the back of another that synchronises more",
    Proposer::When::kRefine, HasTwo, Splice};

}  // namespace isomer
