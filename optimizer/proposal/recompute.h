// What a configuration computes again for the backward pass rather than keeping it.
#ifndef ISOMER_OPTIMIZER_PROPOSAL_RECOMPUTE_H_
#define ISOMER_OPTIMIZER_PROPOSAL_RECOMPUTE_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "optimizer/sharding/compute_graph.h"
#include "pcg/ir/graph.h"

namespace isomer {

enum class RecomputeMode {
  kNone,
  // What frees most bytes for its time (Korthikanti et al. 2022): the inside of unfused attention;
  // activations that were gathered from other devices, which are gathered again; and results of
  // calls that only move memory (activation functions, norms) where their operands are kept anyway.
  kSelective,
  kFull,  // all but the borders of segments (segments.h)
};
inline constexpr int kNumRecomputeModes = 3;
const char* RecomputeModeName(RecomputeMode mode);  // "none", "selective", "full"
absl::StatusOr<RecomputeMode> ParseRecomputeMode(const std::string& name);

// Value of Plan::recomputed, of a model's graph or a plan's.
std::vector<NodeId> RecomputedNodes(RecomputeMode mode, const Graph& graph);

// Per call of `compute`: whether its result is kept.
std::vector<bool> KeptCalls(RecomputeMode mode, const Graph& graph, const ComputeGraph& compute);

}  // namespace isomer

#endif  // ISOMER_OPTIMIZER_PROPOSAL_RECOMPUTE_H_
