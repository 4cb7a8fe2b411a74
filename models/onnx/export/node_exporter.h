#ifndef ISOMER_MODELS_ONNX_EXPORT_NODE_EXPORTER_H_
#define ISOMER_MODELS_ONNX_EXPORT_NODE_EXPORTER_H_

#include <cstdint>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "models/onnx/export/opsets.h"
#include "models/onnx/onnx.pb.h"
#include "pcg/ir/graph.h"

namespace isomer {

// An attribute of a node of the file.
struct OnnxAttribute {
  OnnxAttribute(const char* name, int64_t value);
  OnnxAttribute(const char* name, double value);
  OnnxAttribute(const char* name, const std::string& value);
  OnnxAttribute(const char* name, const std::vector<int64_t>& value);

  onnx::AttributeProto proto;
};
using OnnxAttributeList = std::vector<OnnxAttribute>;

// A name that no tensor of the file has yet: `wanted`, or that with a number.
std::string UniqueName(absl::string_view wanted, std::set<std::string>* names);

// One node of a graph being written as nodes of a file. The first error is kept.
class NodeExporter {
 public:
  // `inputs` and `outputs` are names in the file, whose opset is `opset`.
  NodeExporter(const Graph& graph, NodeId id, std::vector<std::string> inputs,
               std::vector<std::string> outputs, std::set<std::string>* names, int64_t opset,
               onnx::GraphProto* file)
      : graph_(graph),
        node_(graph.node(id)),
        inputs_(std::move(inputs)),
        outputs_(std::move(outputs)),
        names_(names),
        opset_(opset),
        file_(file) {}

  const Operator& op() const { return node_.op; }
  OpKind kind() const { return node_.op.kind(); }
  int num_inputs() const { return static_cast<int>(inputs_.size()); }
  const std::string& In(int i) const { return inputs_[i]; }
  const TensorType& InType(int i) const { return graph_.type(node_.inputs[i]); }
  std::vector<int64_t> InSizes(int i) const { return InType(i).Sizes(); }
  const TensorType& OutType(int i) const { return node_.outputs[i]; }
  // An attribute that is an axis, counted from the front of a tensor of `rank` dims.
  int64_t Axis(absl::string_view attribute, int rank) const;

  template <typename... Parts>
  void Fail(const Parts&... parts) {
    status_.Update(absl::UnimplementedError(absl::StrCat(parts...)));
  }
  const absl::Status& status() const { return status_; }
  // That all nodes written are valid in, the least; it may be above that of the file.
  int64_t needed_opset() const { return needed_opset_; }

  // A node between others; returns the name of its one output.
  std::string Add(const char* op, std::vector<std::string> inputs,
                  OnnxAttributeList attributes = {});
  // The same with several outputs.
  std::vector<std::string> AddMany(const char* op, std::vector<std::string> inputs, int num_outputs,
                                   OnnxAttributeList attributes = {});
  // The node whose outputs are those of the call.
  void Result(const char* op, std::vector<std::string> inputs, OnnxAttributeList attributes = {});
  // The same, of an operator of another domain.
  void ResultOf(const std::string& domain, const std::string& op, std::vector<std::string> inputs,
                OnnxAttributeList attributes);
  // The node whose output is output `i` of the call.
  void ResultAt(int i, const char* op, std::vector<std::string> inputs,
                OnnxAttributeList attributes = {});

  // A reduction of `x` over dims, as the opset has it: for the call's output, and between others.
  void ResultOfReduction(const char* op, const std::string& x, const std::vector<int64_t>& axes,
                         bool keepdims);
  std::string Reduced(const char* op, const std::string& x, const std::vector<int64_t>& axes,
                      bool keepdims);

  // Constants. Floats are Constant nodes: initializers of floats are weights.
  std::string Ints(std::vector<int64_t> values);     // a list
  std::string Int(int64_t value);                    // a scalar
  std::string Number(double value, DataType dtype);  // a scalar
  std::string Numbers(std::vector<int64_t> dims, const std::vector<double>& values, DataType dtype);
  // `x` with other dims.
  std::string Reshaped(const std::string& x, std::vector<int64_t> shape);

 private:
  void AddNode(const char* op, std::vector<std::string> inputs, std::vector<std::string> outputs,
               OnnxAttributeList attributes, const std::string& domain = "");
  std::string NewName(absl::string_view suffix);
  bool HasBFloat16() const;
  // What comes beside `keepdims`: the axes, as one of operands and attributes.
  struct Reduction {
    std::vector<std::string> inputs;
    OnnxAttributeList attributes;
  };
  Reduction ReductionOf(absl::string_view op, const std::string& x,
                        const std::vector<int64_t>& axes, bool keepdims);

  const Graph& graph_;
  const Node& node_;
  const std::vector<std::string> inputs_, outputs_;
  std::set<std::string>* const names_;
  const int64_t opset_;
  int64_t needed_opset_ = kLeastOpset;
  onnx::GraphProto* const file_;
  absl::Status status_;
};

// Sets the elements of `tensor`, of type `dtype`, as raw data. Number: float or double.
template <typename Number>
void SetElements(DataType dtype, const std::vector<Number>& values, onnx::TensorProto* tensor);

// A Constant node that defines `name`; its value is to be filled in.
onnx::TensorProto* AddConstantNode(const std::string& name, onnx::GraphProto* file);

}  // namespace isomer

#endif  // ISOMER_MODELS_ONNX_EXPORT_NODE_EXPORTER_H_
