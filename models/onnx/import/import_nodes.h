#ifndef ISOMER_MODELS_ONNX_IMPORT_IMPORT_NODES_H_
#define ISOMER_MODELS_ONNX_IMPORT_IMPORT_NODES_H_

#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "models/onnx/import/node_importer.h"

namespace isomer {

// Whether the importer has something for this operator of this domain and opset.
bool IsKnownOperator(const OnnxGraph& graph, const OnnxNode& node);
// "ai.onnx" for the default domain.
std::string DomainName(const OnnxNode& node);
// "13", or "of no opset".
std::string OpsetText(const OnnxGraph& graph, const OnnxNode& node);

// A node that could not be imported, and why.
struct RefusedNode {
  OnnxNode node;
  std::string opset;
  std::string reason;
};

// Imports the nodes of state->onnx that an output needs, in order: those whose value is known are
// computed, of an If the branch that its condition says takes its place, the others become nodes of
// the graph. Errors begin with the node.
// With `refused`, nodes that fail are added to it, and those that depend on them passed over.
absl::Status ImportNodes(ImportState* state, std::vector<RefusedNode>* refused = nullptr);

}  // namespace isomer

#endif  // ISOMER_MODELS_ONNX_IMPORT_IMPORT_NODES_H_
