#ifndef ISOMER_MODELS_UNFUSED_ATTENTION_H_
#define ISOMER_MODELS_UNFUSED_ATTENTION_H_

#include "absl/status/statusor.h"
#include "pcg/ir/plan.h"

namespace isomer {

// The model with calls of attention as they run without fused kernels: scores that are written and
// read (matmul, mask, softmax, matmul). What is masked by `causal` gets -1e30 added. Returns how
// many calls were taken apart. REQUIRES: the types of the model are sequential.
absl::StatusOr<int> TakeAttentionApart(Model* model);

}  // namespace isomer

#endif  // ISOMER_MODELS_UNFUSED_ATTENTION_H_
