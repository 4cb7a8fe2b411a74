#ifndef ISOMER_MODELS_ONNX_IMPORT_IMPORT_NODES_H_
#define ISOMER_MODELS_ONNX_IMPORT_IMPORT_NODES_H_

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
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
// computed, graphs inside of nodes take their places (control_flow.h), the others become nodes of
// the graph. Errors begin with the node. With `refused`, nodes that fail are added to it, and those
// that depend on them passed over.
absl::Status ImportNodes(ImportState* state, std::vector<RefusedNode>* refused = nullptr);

// One node, whose operands are defined.
absl::Status ImportNode(const OnnxNode& node, ImportState* state,
                        std::vector<RefusedNode>* refused = nullptr);

// Whether there is a tensor or a sequence of that name yet; "" is one that is left out.
bool IsDefined(const std::string& name, const ImportState& state);
// `name` becomes another name of what `of` is.
absl::Status DefineAlias(const std::string& name, const std::string& of, ImportState* state);
absl::StatusOr<std::vector<int64_t>> SizesOf(const std::string& name, ImportState* state);

// The running statistics of normalisations: they follow the data, not a gradient.
std::set<std::string> RunningStatistics(const OnnxGraph& graph);

}  // namespace isomer

#endif  // ISOMER_MODELS_ONNX_IMPORT_IMPORT_NODES_H_
