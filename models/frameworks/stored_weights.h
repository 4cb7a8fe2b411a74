// Where a plan's weights lie between steps, and what becomes of their gradients.
#ifndef ISOMER_MODELS_FRAMEWORKS_STORED_WEIGHTS_H_
#define ISOMER_MODELS_FRAMEWORKS_STORED_WEIGHTS_H_

#include "models/frameworks/placed_program.h"
#include "pcg/ir/plan.h"
#include "pcg/ir/weight_update.h"

namespace isomer {

// In training, of the weights of `program`: ZeRO (those whose updates are split are stored in
// parts, where a dim divides by the number of copies), `read`, `summed` and `sums_each`.
void StoreWeightsInParts(const Plan& plan, PlacedProgram* program);

// Whether any weight is updated so.
bool Updates(const Plan& plan, UpdateMethod method);

}  // namespace isomer

#endif  // ISOMER_MODELS_FRAMEWORKS_STORED_WEIGHTS_H_
