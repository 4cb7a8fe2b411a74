// Traces choices back through the reductions (mapping_reduction.h).
#include <algorithm>
#include <limits>
#include <utility>

#include "optimizer/mapping/mapping_reduction.h"

namespace isomer {

// Decides the inner nodes of a composite from its ends.
class MappingTraceBack {
 public:
  MappingTraceBack(const MappingReduction& reduction, std::vector<int>* choices)
      : reduction_(reduction), choices_(*choices) {}

  void Composite(int composite, int share) {
    const auto& c = reduction_.composites_[composite];
    if (c.edge != nullptr) return;
    if (c.inner >= 0) {
      Series(c, share);
    } else {
      Parallel(c, share);
    }
  }

  void Unfold(const MappingReduction::Fold& fold) {
    if (fold.node < 0) {
      // The composite keeps to the share of its free end.
      const auto& c = reduction_.composites_[fold.composite];
      return Composite(fold.composite, std::max(ShareAt(c.a), ShareAt(c.b)));
    }
    const int share =
        fold.neighbour < 0 ? 0 : reduction_.ShareOfFold(fold, choices_[fold.neighbour]);
    float best = std::numeric_limits<float>::infinity();
    int best_choice = 0;
    for (int k : reduction_.ChoicesOf(fold.node, share)) {
      choices_[fold.node] = k;
      const float us = reduction_.nodes_[fold.node].us[k] +
                       (fold.composite < 0 ? 0 : UsOf(fold.composite, share));
      if (us >= best) continue;
      best = us;
      best_choice = k;
    }
    choices_[fold.node] = best_choice;
    if (fold.composite >= 0) Composite(fold.composite, share);
  }

 private:
  int ShareAt(int node) const { return reduction_.ShareOf(node, choices_[node]); }

  float UsOf(int composite, int share) const {
    const auto& c = reduction_.composites_[composite];
    const auto place = [&](int node) { return reduction_.PlaceIn(node, choices_[node], share); };
    return reduction_.Us(composite, share).at(place(c.a), place(c.b));
  }

  void Parallel(const MappingReduction::Composite& c, int share) {
    std::pair<int, int> parts = {share, share};
    float best = UsOf(c.left, share) + UsOf(c.right, share);
    if (reduction_.RunBeside(c.left, c.right)) {
      for (const ShareSplit& split : reduction_.splits_) {
        if (static_cast<int>(split.of) != share) continue;
        const int first = static_cast<int>(split.first), second = static_cast<int>(split.second);
        for (const auto& [f, g] : {std::pair(first, second), std::pair(second, first)}) {
          const float us = std::max(UsOf(c.left, f), UsOf(c.right, g));
          if (us >= best) continue;
          best = us;
          parts = {f, g};
        }
      }
    }
    Composite(c.left, parts.first);
    Composite(c.right, parts.second);
  }

  void Series(const MappingReduction::Composite& c, int share) {
    float best = std::numeric_limits<float>::infinity();
    int best_choice = 0;
    for (int k : reduction_.ChoicesOf(c.inner, share)) {
      choices_[c.inner] = k;
      const float us =
          reduction_.nodes_[c.inner].us[k] + UsOf(c.left, share) + UsOf(c.right, share);
      if (us >= best) continue;
      best = us;
      best_choice = k;
    }
    choices_[c.inner] = best_choice;
    Composite(c.left, share);
    Composite(c.right, share);
  }

  const MappingReduction& reduction_;
  std::vector<int>& choices_;
};

std::vector<int> MappingReduction::Choices(int first, int second) const {
  std::vector<int> choices(nodes_.size(), 0);
  if (!terminals_.empty()) choices[terminals_[0]] = first;
  if (terminals_.size() > 1) choices[terminals_[1]] = second;
  for (const auto& [node, choice] : fixed_) choices[node] = choice;
  MappingTraceBack back(*this, &choices);
  if (terminals_.size() > 1 && !live_[terminals_[0]].empty()) {
    back.Composite(live_[terminals_[0]][0], 0);
  }
  // A folded node answers its neighbour, which is already decided: last fold first.
  for (auto fold = folds_.rbegin(); fold != folds_.rend(); ++fold) back.Unfold(*fold);
  return choices;
}

}  // namespace isomer
