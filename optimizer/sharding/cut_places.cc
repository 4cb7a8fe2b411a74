#include "optimizer/sharding/cut_places.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

namespace isomer {
namespace {

// Longer stretches are cut by carrying tensors.
constexpr int kLongStretch = 256;
// Tensors with shorter lifetimes are not carried: layers have their residuals there.
constexpr int kShortLife = 24;
// A tensor this many times smaller than the largest of the stretch is small: its placement hardly
// matters.
constexpr int64_t kSmall = 1000;

struct Stretch {
  int begin, end;  // indices between cuts
  int64_t most_elements = 0;
};

std::vector<Cut> CutsBut(const std::vector<Lifetime>& lifetimes, const std::vector<bool>& carried,
                         int num_calls) {
  // change[i]: live tensors after call i minus those after call i-1.
  std::vector<int> change(num_calls + 1, 0), made(num_calls, -1);
  for (size_t t = 0; t < lifetimes.size(); ++t) {
    if (carried[t]) continue;
    ++change[lifetimes[t].made];
    --change[lifetimes[t].last_use];
    if (lifetimes[t].last_use > lifetimes[t].made) made[lifetimes[t].made] = static_cast<int>(t);
  }
  std::vector<Cut> cuts;
  int alive = 0;
  for (int i = 0; i + 1 < num_calls; ++i) {
    alive += change[i];
    if (alive == 1 && made[i] >= 0) cuts.push_back({i, lifetimes[made[i]].tensor});
  }
  return cuts;
}

std::vector<Stretch> LongStretches(const std::vector<Cut>& cuts, int num_calls) {
  std::vector<Stretch> stretches;
  int begin = 0;
  for (size_t c = 0; c <= cuts.size(); ++c) {
    const int end = c == cuts.size() ? num_calls : cuts[c].after + 1;
    if (end - begin > kLongStretch) stretches.push_back({begin, end});
    begin = end;
  }
  return stretches;
}

}  // namespace

std::vector<Lifetime> LifetimesOf(const Graph& graph, const ComputeGraph& compute) {
  std::map<TensorRef, int> last_use;
  for (int i = 0; i < static_cast<int>(compute.nodes.size()); ++i) {
    for (TensorRef input : graph.node(compute.nodes[i].id).inputs) {
      if (compute.index[input.node.value] >= 0) last_use[input] = i;
    }
  }
  std::vector<Lifetime> lifetimes;
  for (const auto& [tensor, last] : last_use) {
    lifetimes.push_back({tensor, compute.index[tensor.node.value], last});
  }
  return lifetimes;
}

std::vector<Cut> FindCuts(const Graph& graph, const ComputeGraph& compute,
                          const std::vector<Lifetime>& lifetimes) {
  const int num_calls = static_cast<int>(compute.nodes.size());
  std::vector<bool> carried(lifetimes.size(), false);
  std::vector<Cut> cuts = CutsBut(lifetimes, carried, num_calls);
  std::vector<Stretch> stretches = LongStretches(cuts, num_calls);
  if (stretches.empty()) return cuts;
  const auto in = [](const Stretch& stretch, int place) {
    return stretch.begin <= place && place < stretch.end;
  };
  const auto elements = [&](size_t t) { return graph.type(lifetimes[t].tensor).NumElements(); };
  for (Stretch& stretch : stretches) {
    for (size_t t = 0; t < lifetimes.size(); ++t) {
      if (!in(stretch, lifetimes[t].made)) continue;
      stretch.most_elements = std::max(stretch.most_elements, elements(t));
    }
  }
  for (size_t t = 0; t < lifetimes.size(); ++t) {
    for (const Stretch& stretch : stretches) {
      const int life =
          std::min(lifetimes[t].last_use, stretch.end) - std::max(lifetimes[t].made, stretch.begin);
      const bool is_long = 2 * life > stretch.end - stretch.begin;
      const bool is_small = kSmall * elements(t) < stretch.most_elements;
      if (life > kShortLife && (is_long || is_small)) carried[t] = true;
    }
  }
  // The crossing tensor must be used by the next piece; a carried one need not be.
  std::set<TensorRef> carried_tensors;
  for (size_t t = 0; t < lifetimes.size(); ++t) {
    if (carried[t]) carried_tensors.insert(lifetimes[t].tensor);
  }
  std::erase_if(cuts, [&](const Cut& cut) { return carried_tensors.count(cut.tensor) > 0; });
  for (const Cut& cut : CutsBut(lifetimes, carried, num_calls)) {
    const bool is_new = std::any_of(stretches.begin(), stretches.end(), [&](const Stretch& s) {
      return in(s, cut.after) && cut.after + 1 < s.end;
    });
    if (is_new) cuts.push_back(cut);
  }
  std::sort(cuts.begin(), cuts.end(), [](const Cut& a, const Cut& b) { return a.after < b.after; });
  return cuts;
}

}  // namespace isomer
