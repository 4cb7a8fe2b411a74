// Sequences of tensors, as PyTorch's exporters make them of Python lists. None exists at run time:
// which tensors one has is known at import.
#ifndef ISOMER_MODELS_ONNX_IMPORT_SEQUENCES_H_
#define ISOMER_MODELS_ONNX_IMPORT_SEQUENCES_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "models/onnx/import/node_importer.h"

namespace isomer {

bool IsSequenceOperator(absl::string_view op);

// REQUIRES: IsSequenceOperator(node.op).
absl::Status ImportSequenceOperator(const OnnxNode& node, ImportState* state);

// `output` becomes the tensors `parts` one behind the other: along `axis`, or with `stacks` along a
// new dim there. Errors are those of Concat; `node` is the one whose output that is.
absl::Status ImportConcatenation(const OnnxNode& node, const std::vector<std::string>& parts,
                                 int64_t axis, bool stacks, const std::string& output,
                                 ImportState* state);

}  // namespace isomer

#endif  // ISOMER_MODELS_ONNX_IMPORT_SEQUENCES_H_
