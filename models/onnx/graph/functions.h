// Functions that a file defines: operators of its own, given by their bodies.
//
// A node that calls one is replaced by the nodes of the body, before anything else looks at it.
// Names of the body are made new ones ("y/hidden" for a call whose first output is 'y'), what the
// body calls its inputs and outputs becomes what the call has there, and a reference to an
// attribute of the function becomes the value that the call gives, or else the function's default;
// where there is neither, the node is without the attribute.
#ifndef ISOMER_MODELS_ONNX_GRAPH_FUNCTIONS_H_
#define ISOMER_MODELS_ONNX_GRAPH_FUNCTIONS_H_

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "models/onnx/onnx.pb.h"

namespace isomer {

// What a call is replaced by.
struct FunctionBody {
  std::vector<onnx::NodeProto> nodes;
  int64_t opset = 0;  // of the default domain, which the nodes mean; 0: that of the call
  std::string name;   // of the function, for messages: "'pkg.layers::Linear'"
};

class OnnxFunctions {
 public:
  // Errors name the function: two of one domain, name and overload, an opset that is not read.
  absl::Status Add(onnx::FunctionProto function, int64_t oldest_opset, int64_t newest_opset);

  // Also an operator of the standard may be defined by the file, which then counts.
  bool Defines(const onnx::NodeProto& node) const { return functions_.count(KeyOf(node)) > 0; }

  // The nodes that stand for `call`; all their names but those of the call begin with `prefix`.
  // Nodes among them may be calls again, at most 64 inside of each other.
  // Errors name the function: one that calls itself, directly or through others, a name that its
  // body defines twice or not at all, more inputs or outputs than it has, an attribute that it does
  // not have or has with another type, a graph as attribute. All calls together may make 2^17
  // nodes of 2^28 bytes.
  absl::StatusOr<FunctionBody> Expand(const onnx::NodeProto& call, const std::string& prefix);

 private:
  using Key = std::tuple<std::string, std::string, std::string>;  // domain, name, overload

  struct Function {
    onnx::FunctionProto proto;
    int64_t opset = 0;
    bool is_checked = false, is_being_checked = false;
    int height = 0;  // calls inside of each other, from here on; where it was checked
    std::map<std::string, onnx::AttributeProto> defaults;
    std::set<std::string> attributes;  // all, with a default and without
  };

  static Key KeyOf(const onnx::NodeProto& node);
  absl::Status Check(Function* function, int depth);
  absl::Status CheckCallees(const onnx::NodeProto& node, int depth, int* height);
  absl::Status CheckNames(const Function& function) const;

  std::map<Key, Function> functions_;
  int64_t nodes_left_ = int64_t{1} << 17;
  int64_t bytes_left_ = int64_t{1} << 28;
};

}  // namespace isomer

#endif  // ISOMER_MODELS_ONNX_GRAPH_FUNCTIONS_H_
