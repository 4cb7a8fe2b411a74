// Whether an optimizer's states can be kept in bfloat16, as it is set.
#ifndef ISOMER_PCG_IR_STATE_DECAY_H_
#define ISOMER_PCG_IR_STATE_DECAY_H_

#include "absl/status/status.h"
#include "pcg/ir/weight_update.h"

namespace isomer {

// A running mean that forgets the share 1 - beta of itself in a step forgets nothing where that is
// less than half the distance to the next number below it, to which it is rounded: it only grows.
// The distance is 2^-8 of the number or more, and so a share of 2^-8 is always seen.
inline constexpr double kLeastDecayInBFloat16 = 1.0 / 256;

// Error: a state of `update` would not decay. It names the setting as flags do.
absl::Status CheckStatesDecay(const UpdateOptions& update, const OptimizerSettings& settings);

}  // namespace isomer

#endif  // ISOMER_PCG_IR_STATE_DECAY_H_
