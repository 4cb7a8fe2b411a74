// Plans as PyTorch: one Python file with the plan as modules of local operators and moves between
// DTensor placements, which torchrun starts, and the model as it was to compare it with.
//
// A stage of a pipeline is made of torch.distributed.pipelining's stages. ZeRO is a placement: a
// weight that is stored in parts is gathered by the move to where it is read, and its gradient
// scattered by that move's own gradient.
//
// Refused, by a line that names the node: operators without a form in PyTorch (torch_operators.py),
// shards that are no digits of a mesh. Refused, too, are pipelines that are not drained (2BW).
#ifndef ISOMER_MODELS_FRAMEWORKS_PYTORCH_EXPORT_H_
#define ISOMER_MODELS_FRAMEWORKS_PYTORCH_EXPORT_H_

#include <string>

#include "absl/status/statusor.h"
#include "models/frameworks/leaf_tables.h"
#include "pcg/ir/plan.h"

namespace isomer {

// `file_name`: what the file will be called, for its text; `weights_name`: of the file of weights
// that will lie beside it.
absl::StatusOr<FrameworkExport> PytorchFileOf(const Plan& plan, const std::string& file_name,
                                              const std::string& weights_name);

}  // namespace isomer

#endif  // ISOMER_MODELS_FRAMEWORKS_PYTORCH_EXPORT_H_
