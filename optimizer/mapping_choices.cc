#include <algorithm>
#include <array>
#include <limits>

#include "optimizer/mapping.h"
#include "optimizer/mapping_trace.h"

namespace isomer {
namespace {

// Goes back through the reductions, deciding the nodes inside of a composite from its ends.
class TraceBack {
 public:
  explicit TraceBack(const MappingSolution::Trace& trace, std::vector<int>* choices)
      : trace_(trace), choices_(*choices) {}

  void Composites(int composite, int share) {
    const Composite& c = trace_.composites[composite];
    if (c.left < 0) return;
    if (c.inner < 0) {
      Parallel(c, share);
    } else {
      Series(c, share);
    }
  }

  void Unfold(const MappingSolution::Trace::Fold& fold) {
    if (fold.node < 0) return Composites(fold.composite, 0);
    const auto& us = trace_.nodes[fold.node].us;
    float best = std::numeric_limits<float>::infinity();
    int best_choice = 0;
    for (int k = 0; k < static_cast<int>(us.size()); ++k) {
      choices_[fold.node] = k;
      const float total = us[k] + (fold.composite < 0 ? 0 : UsOf(fold.composite, 0));
      if (total < best) {
        best = total;
        best_choice = k;
      }
    }
    choices_[fold.node] = best_choice;
    if (fold.composite >= 0) Composites(fold.composite, 0);
  }

  float UsOf(int composite, int share) const {
    const Composite& c = trace_.composites[composite];
    return c.Us(share).at(choices_[c.a], choices_[c.b]);
  }

 private:
  void Parallel(const Composite& c, int share) {
    std::array<int, 2> parts = {share, share};
    if (share == 0 && RunBeside(trace_.composites[c.left], trace_.composites[c.right])) {
      const float in_turn = UsOf(c.left, 0) + UsOf(c.right, 0);
      const float lower_upper = std::max(UsOf(c.left, 1), UsOf(c.right, 2));
      const float upper_lower = std::max(UsOf(c.left, 2), UsOf(c.right, 1));
      if (std::min(lower_upper, upper_lower) < in_turn) {
        parts = lower_upper <= upper_lower ? std::array<int, 2>{1, 2} : std::array<int, 2>{2, 1};
      }
    }
    Composites(c.left, parts[0]);
    Composites(c.right, parts[1]);
  }

  void Series(const Composite& c, int share) {
    const auto& node = trace_.nodes[c.inner];
    float best = std::numeric_limits<float>::infinity();
    int best_choice = 0;
    for (int k = 0; k < static_cast<int>(node.us.size()); ++k) {
      if (share != 0 && (node.shares.empty() || static_cast<int>(node.shares[k]) != share))
        continue;
      choices_[c.inner] = k;
      const float us = UsOf(c.left, share) + node.us[k] + UsOf(c.right, share);
      if (us < best) {
        best = us;
        best_choice = k;
      }
    }
    choices_[c.inner] = best_choice;
    Composites(c.left, share);
    Composites(c.right, share);
  }

  const MappingSolution::Trace& trace_;
  std::vector<int>& choices_;
};

}  // namespace

namespace {

// Composites that no other composite or fold is made of: those of a conditioned solve are edges of
// the rest.
std::vector<int> LiveComposites(const MappingSolution::Trace& trace) {
  std::vector<bool> part(trace.composites.size(), false);
  for (const Composite& c : trace.composites) {
    if (c.left >= 0) part[c.left] = part[c.right] = true;
  }
  for (const MappingSolution::Trace::Fold& fold : trace.folds) {
    if (fold.composite >= 0) part[fold.composite] = true;
  }
  std::vector<int> live;
  for (int c = 0; c < static_cast<int>(part.size()); ++c) {
    if (!part[c]) live.push_back(c);
  }
  return live;
}

}  // namespace

std::vector<int> MappingSolution::Choices(int first, int second) const {
  const Trace& trace = *trace_;
  std::vector<int> choices(trace.nodes.size(), 0);
  if (trace.conditioned >= 0) {
    size_t best = 0;
    for (size_t i = 1; i < trace.alternatives.size(); ++i) {
      if (trace.alternatives[i].table_.at(first, second) <
          trace.alternatives[best].table_.at(first, second)) {
        best = i;
      }
    }
    choices = trace.alternatives[best].Choices(first, second);
    choices[trace.conditioned] = trace.conditions[best];
  }
  if (!trace.terminals.empty()) choices[trace.terminals[0]] = first;
  if (trace.terminals.size() > 1) choices[trace.terminals[1]] = second;
  TraceBack back(trace, &choices);
  if (trace.last >= 0) back.Composites(trace.last, 0);
  if (trace.conditioned >= 0) {
    for (int c : LiveComposites(trace)) back.Composites(c, 0);
  }
  // A folded node answers its neighbour, which is decided by now: last fold first.
  for (auto fold = trace.folds.rbegin(); fold != trace.folds.rend(); ++fold) back.Unfold(*fold);
  return choices;
}

}  // namespace isomer
