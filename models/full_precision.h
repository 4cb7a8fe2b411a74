#ifndef ISOMER_MODELS_FULL_PRECISION_H_
#define ISOMER_MODELS_FULL_PRECISION_H_

#include "absl/status/status.h"
#include "pcg/ir/plan.h"

namespace isomer {

// The low precision that a model states, of a leaf; float32 where it states none.
DataType StatedPrecision(const Model& model);

// The model with float32 for float16 and bfloat16, and without casts among them: the same function
// of real numbers. In which precision something is computed is said by plans (pcg/ir/precision.h),
// which train weights in float32 whatever it is, so that a network that was exported in low
// precision is trained as others are. REQUIRES: the types of the model are sequential.
absl::Status StateFloat32(Model* model);

}  // namespace isomer

#endif  // ISOMER_MODELS_FULL_PRECISION_H_
