// The intervals between calls over which the paths of a relaxed step (relaxed_step.h) may take all
// compute, or all transfers.
//
// Any two calls, one after the other, are valid. These are worth it:
//
//   cuts      calls that every other one is before or after; from one to the next, and, for
//             transfers, over a few
//   borders   calls that nearly all others are before or after: where skip connections (U-Net) or
//             values used everywhere (a time embedding) leave no cuts
//   branches  from fork to join: the last call before two operands of a call (a cell of NASNet, a
//             step of a recurrent network)
#include <algorithm>
#include <set>
#include <utility>

#include "optimizer/bound/relaxed_step.h"
#include "pcg/ir/operator_facts.h"

namespace isomer {
namespace {

// Consecutive cuts combined into one interval of transfers.
constexpr int kMostCuts = 4;
// Minimum fraction of calls before or after a border; and the approximate number of borders besides
// cuts.
constexpr double kNearlyAll = 0.75;
constexpr int kMostBorders = 48;
// Approximate total of calls in intervals of branches.
constexpr size_t kMostCalls = 100000;

// Per call: its ancestors and itself, as bits.
std::vector<std::vector<bool>> Ancestors(const ComputeGraph& compute) {
  const size_t n = compute.nodes.size();
  std::vector<std::vector<bool>> before(n, std::vector<bool>(n, false));
  for (size_t v = 0; v < n; ++v) {
    before[v][v] = true;
    for (const auto& operand : compute.nodes[v].operands) {
      if (operand.producer < 0) continue;
      const std::vector<bool>& others = before[operand.producer];
      for (size_t u = 0; u < v; ++u) {
        if (others[u]) before[v][u] = true;
      }
    }
  }
  return before;
}

}  // namespace

// A contraction with gradients.
bool RelaxedStep::IsContraction(int call) const {
  const auto& operands = calls_.compute->nodes[call].operands;
  return training_ && isomer::IsContraction(calls_.calls[call]->space.op.kind()) &&
         std::any_of(operands.begin(), operands.end(),
                     [](const auto& operand) { return operand.gradient; });
}

// Cuts and some other borders, ascending.
std::vector<int> RelaxedStep::FindBorders(const std::vector<std::vector<bool>>& before,
                                          std::vector<bool>* is_cut) const {
  const int num_relevant = static_cast<int>(std::count(relevant_.begin(), relevant_.end(), true));
  std::vector<int> cuts, others;
  for (int v = 0; v <= calls_.end; ++v) {
    if (!relevant_[v]) continue;
    int related = 0;
    for (int u = 0; u <= calls_.end; ++u) {
      related += relevant_[u] && (before[v][u] || before[u][v]);
    }
    (*is_cut)[v] = related == num_relevant;
    if ((*is_cut)[v]) {
      cuts.push_back(v);
    } else if (related >= kNearlyAll * num_relevant) {
      others.push_back(v);
    }
  }
  std::vector<int> borders = std::move(cuts);
  const size_t some = std::min<size_t>(others.size(), kMostBorders);
  for (size_t i = 0; i < some; ++i) borders.push_back(others[i * others.size() / some]);
  std::sort(borders.begin(), borders.end());
  return borders;
}

// Finds the calls that have a contraction between them and `from`, or at it.
void RelaxedStep::FindWeighed(Interval* interval) const {
  if (interval->from < 0) return;
  std::vector<bool> is_weighed(num_calls(), false), is_there(num_calls(), false);
  const bool is_first = IsContraction(interval->from);
  for (int v : interval->calls) {
    is_there[v] = true;
    is_weighed[v] = is_first;
    for (int e : edges_to_[v]) {
      const int maker = edges_[e].from;
      if (is_there[maker] && (is_weighed[maker] || IsContraction(maker))) is_weighed[v] = true;
    }
    if (is_weighed[v]) interval->weighed.push_back(v);
  }
}

void RelaxedStep::FindIntervals() {
  const int n = num_calls();
  relevant_.assign(n, false);
  intervals_to_.resize(n);
  intervals_from_.resize(n);
  if (n == 0) return;
  const std::vector<std::vector<bool>> before = Ancestors(*calls_.compute);
  relevant_ = before[calls_.end];
  std::set<std::pair<int, int>> known;
  const auto add = [&](int from, int to) -> Interval* {
    if (from == to || (from >= 0 && !before[to][from])) return nullptr;
    if (!known.insert({from, to}).second) return nullptr;
    Interval interval;
    interval.from = from;
    interval.to = to;
    for (int v = from + 1; v <= to; ++v) {
      if (!before[to][v] || (from >= 0 && !before[v][from])) continue;
      interval.calls.push_back(v);
      for (int e : edges_to_[v]) {
        const int maker = edges_[e].from;
        if (from < 0 || before[maker][from]) interval.edges.push_back(e);
      }
    }
    FindWeighed(&interval);
    const int index = static_cast<int>(intervals_.size());
    intervals_to_[to].push_back(index);
    if (from >= 0) intervals_from_[from].push_back(index);
    intervals_.push_back(std::move(interval));
    return &intervals_.back();
  };

  std::vector<bool> is_cut(n, false);
  const std::vector<int> borders = FindBorders(before, &is_cut);
  std::vector<int> cuts = {-1};
  int last_border = -1;
  for (int border : borders) {
    beginnings_.push_back(static_cast<int>(intervals_.size()));
    if (Interval* beginning = add(-1, border); beginning != nullptr && is_cut[border]) {
      beginning->computes = beginning->is_between_cuts = cuts.size() == 1;
      beginning->moves = cuts.size() <= kMostCuts;
    }
    if (last_border >= 0) {
      Interval* interval = add(last_border, border);
      if (interval != nullptr) {
        interval->is_between_cuts = is_cut[last_border] && is_cut[border];
      }
    }
    if (!is_cut[border]) add(border, calls_.end);
    if (is_cut[border]) {
      for (int k = 1; k <= kMostCuts && k <= static_cast<int>(cuts.size()); ++k) {
        Interval* interval = add(cuts[cuts.size() - k], border);
        if (interval == nullptr) continue;
        // Gradients of weights are before the next contraction.
        const bool contracts = cuts[cuts.size() - k] >= 0 && IsContraction(cuts[cuts.size() - k]);
        const bool is_first = std::none_of(cuts.end() - k + 1, cuts.end(),
                                           [this](int c) { return IsContraction(c); });
        interval->computes = interval->is_between_cuts = k == 1 || (contracts && is_first);
      }
      cuts.push_back(border);
    }
    last_border = border;
  }

  size_t total = 0;
  for (int v = 0; v <= calls_.end && total < kMostCalls; ++v) {
    if (!relevant_[v]) continue;
    for (size_t a = 1; a < edges_to_[v].size(); ++a) {
      const std::vector<bool>& one = before[edges_[edges_to_[v][a - 1]].from];
      const std::vector<bool>& other = before[edges_[edges_to_[v][a]].from];
      int parting = v;
      while (--parting >= 0 && !(one[parting] && other[parting])) {
      }
      if (parting < 0) continue;
      if (const Interval* interval = add(parting, v); interval != nullptr) {
        total += interval->calls.size();
      }
    }
  }
}

}  // namespace isomer
