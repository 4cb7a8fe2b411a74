#include "optimizer/proposal/recomputation_levels.h"

#include <algorithm>
#include <map>

#include "optimizer/simulator/simulator.h"
#include "pcg/support/status_macros.h"

namespace isomer {

absl::StatusOr<RecomputationLevels> RecomputationLevels::Of(const Plan& plan,
                                                            absl::Span<const NodeResults> results,
                                                            absl::Span<const Segment> segments,
                                                            int64_t most) {
  RecomputationLevels made;
  made.levels_ = LevelsOfRecomputation(segments, static_cast<int>(most));
  ISOMER_ASSIGN_OR_RETURN(const int64_t moments, NumMicroBatches(plan.graph, plan.views));
  const int64_t stages = NumGroupsOfDevices(plan);
  for (const std::vector<NodeId>& level : made.levels_) {
    made.effects_.push_back(EffectOf(level, results, stages, moments));
  }
  return made;
}

RecomputationLevels::Effect RecomputationLevels::EffectOf(absl::Span<const NodeId> level,
                                                          absl::Span<const NodeResults> results,
                                                          int64_t stages, int64_t moments) {
  Effect effect;
  std::map<int32_t, int64_t> kept;  // by the first device
  for (NodeId id : level) {
    const NodeResults& of_node = results[id.value];
    effect.us += of_node.us * static_cast<double>(moments) / static_cast<double>(stages);
    kept[of_node.device] += of_node.kept_bytes;
  }
  // Calls of a stage may begin at several of its devices.
  const bool are_stages = static_cast<int64_t>(kept.size()) == stages;
  for (const auto& [device, bytes] : kept) {
    effect.most_bytes = are_stages ? std::max(effect.most_bytes, bytes) : effect.most_bytes + bytes;
  }
  // What is kept lies there for one micro-batch after the other, but for those in a pipeline.
  if (stages > 1) effect.most_bytes *= moments;
  return effect;
}

RecomputationLevels::Range RecomputationLevels::Within(double us, int64_t bytes) const {
  Range range;
  const auto all = static_cast<int64_t>(levels_.size());
  while (range.end < all && effects_[range.end].us < us) ++range.end;
  while (range.first < range.end && effects_[range.first].most_bytes < bytes) ++range.first;
  return range;
}

}  // namespace isomer
