#include "optimizer/substitution/sweeps.h"

#include <algorithm>
#include <map>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/container/flat_hash_set.h"

namespace isomer {

std::vector<std::vector<Step>> SweepsOf(absl::Span<const Step> steps,
                                        const std::deque<RuleMatch>& matches, size_t most) {
  std::map<int, std::vector<Step>> by_kind;
  for (const Step& step : steps) by_kind[step.kind].push_back(step);
  std::vector<std::pair<float, std::vector<Step>>> sweeps;  // by what they change
  for (auto& [kind, places] : by_kind) {
    // As they were found: by roots.
    absl::c_sort(places, [](const Step& a, const Step& b) { return a.match < b.match; });
    float delta_us = 0;
    std::vector<Step> sweep;
    absl::flat_hash_set<int32_t> rewritten;
    for (const Step& place : places) {
      const std::vector<NodeId>& nodes = matches[place.match].step.nodes;
      if (absl::c_any_of(nodes, [&](NodeId id) { return rewritten.contains(id.value); })) continue;
      for (NodeId id : nodes) rewritten.insert(id.value);
      delta_us += place.delta_us;
      sweep.push_back(place);
    }
    if (sweep.size() > 1) sweeps.emplace_back(delta_us, std::move(sweep));
  }
  absl::c_stable_sort(sweeps, [](const auto& a, const auto& b) { return a.first < b.first; });
  if (sweeps.size() > most) sweeps.resize(most);
  std::vector<std::vector<Step>> steps_of_sweeps;
  for (auto& [delta_us, sweep] : sweeps) steps_of_sweeps.push_back(std::move(sweep));
  return steps_of_sweeps;
}

}  // namespace isomer
