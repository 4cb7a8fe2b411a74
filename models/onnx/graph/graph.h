#ifndef ISOMER_MODELS_ONNX_GRAPH_GRAPH_H_
#define ISOMER_MODELS_ONNX_GRAPH_GRAPH_H_

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "models/onnx/graph/functions.h"
#include "models/onnx/onnx.pb.h"
#include "models/onnx/tensor.h"

namespace isomer {

// What an exporter says of an initializer (provenance.h).
struct OnnxProvenance {
  std::string kind;                      // "PARAMETER", "BUFFER"
  std::vector<std::string> folded_from;  // names that it was computed from
};

// What a node had in the network, and lost to an exporter.
struct OnnxLoss {
  bool bias = false, batch_norm = false;
  std::optional<int64_t> padding_row;  // of an embedding, which PyTorch does not train
  std::vector<int> detached;           // its operands through which PyTorch sends no gradient
};

struct OnnxNode {
  std::string op;      // "Conv"; a pattern that was recognised: "LayerNormalization", "Gelu"
  std::string domain;  // "" for the default one
  std::string label;   // for messages: "node 'conv1' (Conv)"
  std::string module;  // that it is in, as provenance.h has it
  bool is_named_by_module = false;  // by the TorchScript exporter: "/layers.0/norm/Mul"
  OnnxLoss lost;                    // likewise
  int64_t opset = 0;  // of the default domain, where a function has its own; 0: that of the graph
  std::vector<std::string> inputs, outputs;  // "" where left out
  std::vector<std::string> captures;         // what its subgraphs take from around it
  std::map<std::string, onnx::AttributeProto> attributes;
  // Of a recognised LayerNormalization, the node whose place it took: it is one only over the last
  // dim, and which that is is known when the node is imported.
  std::vector<OnnxNode> replaced;
};

// An ONNX graph whose references were checked. The order of `nodes` is topological.
struct OnnxGraph {
  std::string file;    // what messages call it
  std::string folder;  // where external data lies
  std::string name;
  std::string producer;                   // the program that wrote the file, "" where it says none
  int64_t opset = 0;                      // of the default domain
  std::map<std::string, int64_t> opsets;  // of all domains
  // Those that the file defines. Calls of them are not among `nodes`, but may be in subgraphs.
  std::shared_ptr<OnnxFunctions> functions;
  std::vector<OnnxNode> nodes;
  // Initializers, and the values of Constant nodes (which are no longer among `nodes`).
  std::map<std::string, OnnxTensor> constants;
  std::map<std::string, OnnxProvenance> provenance;  // of constants, where the file says some
  std::vector<onnx::ValueInfoProto> inputs;          // without those that have an initializer
  std::vector<onnx::ValueInfoProto> outputs;

  // The node that defines a tensor; null for inputs and constants.
  const OnnxNode* Producer(const std::string& tensor) const;
  std::map<std::string, int> producers;  // index into `nodes`
  // After a change of `nodes`.
  void IndexProducers();
  std::set<std::string> names;  // of all tensors
  int depth = 0;                // of graphs that this one is an attribute in
  bool has_double = false;      // inputs or initializers that were DOUBLE

  int64_t OpsetOf(const OnnxNode& node) const { return node.opset != 0 ? node.opset : opset; }
};

// Errors are one line that begins with `file`: no ONNX file, an opset that is not read, a name
// defined twice, an input that nothing defines, a cycle.
// `leave_data`: the contents are those of the file, where the data of large initializers stays.
absl::StatusOr<OnnxGraph> ReadOnnxGraph(absl::string_view contents, const std::string& file,
                                        bool leave_data = false);

// A graph that is an attribute of `node` in `outer`, such as a branch of If. A tensor that it
// defines under a name that `outer` has too is renamed.
absl::StatusOr<OnnxGraph> ReadOnnxSubgraph(const OnnxGraph& outer, const OnnxNode& node,
                                           onnx::GraphProto proto);

}  // namespace isomer

#endif  // ISOMER_MODELS_ONNX_GRAPH_GRAPH_H_
