// How much of the forward pass is computed again for the backward pass rather than kept.
#ifndef ISOMER_OPTIMIZER_SHARDING_RECOMPUTE_MODE_H_
#define ISOMER_OPTIMIZER_SHARDING_RECOMPUTE_MODE_H_

#include <string>

#include "absl/status/statusor.h"

namespace isomer {

enum class RecomputeMode {
  kNone,
  // What frees most bytes for its time (Korthikanti et al. 2022): the inside of unfused attention;
  // activations that were gathered from other devices, which are gathered again; and results of
  // calls that only move memory (activation functions, norms) where their operands are kept anyway.
  kSelective,
  kFull,  // all but the borders of segments (optimizer/simulator/segments.h)
};
inline constexpr int kNumRecomputeModes = 3;
const char* RecomputeModeName(RecomputeMode mode);  // "none", "selective", "full"
absl::StatusOr<RecomputeMode> ParseRecomputeMode(const std::string& name);

}  // namespace isomer

#endif  // ISOMER_OPTIMIZER_SHARDING_RECOMPUTE_MODE_H_
