// How much of a plan is computed again in the backward pass: from little to all, with what each
// level takes and frees.
#ifndef ISOMER_OPTIMIZER_PROPOSAL_RECOMPUTATION_LEVELS_H_
#define ISOMER_OPTIMIZER_PROPOSAL_RECOMPUTATION_LEVELS_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "optimizer/simulator/segments.h"
#include "pcg/ir/plan.h"

namespace isomer {

class RecomputationLevels {
 public:
  RecomputationLevels() = default;
  // Of these segments of the plan, in at most so many levels (LevelsOfRecomputation).
  static absl::StatusOr<RecomputationLevels> Of(const Plan& plan,
                                                absl::Span<const NodeResults> results,
                                                absl::Span<const Segment> segments, int64_t most);

  // Plan::recomputed of a level.
  const std::vector<NodeId>& nodes(int64_t level) const { return levels_[level]; }

  // Those that may free so many bytes on each device and take less than `us` of a step.
  struct Range {
    int64_t first = 0, end = 0;
    bool empty() const { return first == end; }
  };
  Range Within(double us, int64_t bytes) const;

 private:
  // On a device: what it computes again in a step, on average, as the stages of a pipeline have
  // equal shares; and the most bytes that this can free.
  struct Effect {
    double us = 0;
    int64_t most_bytes = 0;
  };
  static Effect EffectOf(absl::Span<const NodeId> level, absl::Span<const NodeResults> results,
                         int64_t stages, int64_t moments);

  std::vector<std::vector<NodeId>> levels_;
  std::vector<Effect> effects_;
};

}  // namespace isomer

#endif  // ISOMER_OPTIMIZER_PROPOSAL_RECOMPUTATION_LEVELS_H_
