// Graphs inside of nodes: the branches of If, the bodies of Loop and Scan. Where the condition and
// the number of iterations are known at import, they take the place of the node, a body once for
// each iteration. What depends on data is refused.
#ifndef ISOMER_MODELS_ONNX_IMPORT_CONTROL_FLOW_H_
#define ISOMER_MODELS_ONNX_IMPORT_CONTROL_FLOW_H_

#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "models/onnx/import/import_nodes.h"
#include "models/onnx/import/node_importer.h"

namespace isomer {

bool IsControlFlow(absl::string_view op);

// REQUIRES: IsControlFlow(node.op). `refused` as in ImportNodes.
absl::Status ImportControlFlow(const OnnxNode& node, ImportState* state,
                               std::vector<RefusedNode>* refused);

}  // namespace isomer

#endif  // ISOMER_MODELS_ONNX_IMPORT_CONTROL_FLOW_H_
