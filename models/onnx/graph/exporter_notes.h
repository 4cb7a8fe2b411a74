// What else PyTorch's exporters say, or lose, of what is trained (provenance.h).
#ifndef ISOMER_MODELS_ONNX_GRAPH_EXPORTER_NOTES_H_
#define ISOMER_MODELS_ONNX_GRAPH_EXPORTER_NOTES_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "models/onnx/graph/graph.h"
#include "models/onnx/onnx.pb.h"

namespace isomer {

// Of an embedding of the dynamo exporter, the row that PyTorch does not train (padding_idx).
std::optional<int64_t> PaddingRowOf(const onnx::NodeProto& node);

// Of a node of the dynamo exporter, the operands that the program detaches, so that no gradient
// goes through them; none where the node has other operands than the program's.
std::vector<int> DetachedOperandsOf(const onnx::NodeProto& node);

// A line on what PyTorch detaches and the file does not, where something that is trained is behind
// it. REQUIRES: literals are marked (MarkLiterals).
void NoteDetached(const OnnxGraph& graph, std::vector<std::string>* notes);

// A line on what the TorchScript exporter computed from parameters or buffers, which no file tells
// apart. REQUIRES: literals are marked (MarkLiterals).
void NoteFoldedParameters(const OnnxGraph& graph, std::vector<std::string>* notes);

}  // namespace isomer

#endif  // ISOMER_MODELS_ONNX_GRAPH_EXPORTER_NOTES_H_
