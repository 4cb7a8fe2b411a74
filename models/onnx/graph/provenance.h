// What exporters of PyTorch say of a file's initializers, beside their values: which are parameters
// of the network, which they computed, and which stand for several equal ones.
//
// The dynamo exporter writes of each value what it was in the program (value_info, metadata), and
// of what its optimizer computed, all that this was made of; both exporters name nodes after the
// modules that they are in. Values alone do not tell a causal mask or a table of angles, which
// nobody trains, from a weight.
#ifndef ISOMER_MODELS_ONNX_GRAPH_PROVENANCE_H_
#define ISOMER_MODELS_ONNX_GRAPH_PROVENANCE_H_

#include <string>
#include <vector>

#include "models/onnx/graph/graph.h"
#include "models/onnx/onnx.pb.h"

namespace isomer {

// Of value_info; empty where the file says nothing.
OnnxProvenance ProvenanceOf(const onnx::ValueInfoProto& value);

// What the dynamo exporter called it in the program, before it got the name that it has in the
// file; empty where the file says nothing.
std::string ProgramNameOf(const onnx::ValueInfoProto& value);

// What exporters and tools wrote of a node under a key; "" where they did not.
std::string MetadataOf(const onnx::NodeProto& node, const std::string& key);

// At most three of the lines, for a note.
std::string SomeOf(const std::vector<std::string>& lines);

// The module that a node is in: "model.layers.0.input_layernorm"; "" where the file does not say.
std::string ModuleOf(const onnx::NodeProto& node);

// What the dynamo exporter took from it: a bias that was zero, a BatchNorm, that a row is not
// trained.
OnnxLoss LossOf(const onnx::NodeProto& node);

// A parameter that two modules share and the exporter turned for one of them (a table of tokens
// that is the last layer's matrix, too) is one again, behind a Transpose. A note says so.
void RestoreTiedParameters(OnnxGraph* graph, std::vector<std::string>* notes);

// Initializers that no network has as parameters become literals.
void MarkLiterals(OnnxGraph* graph);

// A line on those that are trained though the exporter computed them. REQUIRES: what is a parameter
// after all was restored (shared_parameters.h).
void NoteComputedParameters(const OnnxGraph& graph, std::vector<std::string>* notes);

// Parameters of several modules that the exporter made one, as their initial values were equal,
// are apart again. A note says so.
void SeparateMergedParameters(OnnxGraph* graph, std::vector<std::string>* notes);

// Biases that the exporter left out, as they were zero, are there again, and trained as in PyTorch.
// A note says so, and what BatchNorms are not.
void RestoreDroppedBiases(OnnxGraph* graph, std::vector<std::string>* notes);

}  // namespace isomer

#endif  // ISOMER_MODELS_ONNX_GRAPH_PROVENANCE_H_
