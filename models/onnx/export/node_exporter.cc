#include "models/onnx/export/node_exporter.h"

#include <algorithm>
#include <optional>

#include "absl/strings/ascii.h"
#include "models/onnx/tensor.h"
#include "pcg/support/half.h"
#include "pcg/support/little_endian.h"

namespace isomer {
OnnxAttribute::OnnxAttribute(const char* name, int64_t value) {
  proto.set_name(name);
  proto.set_type(onnx::AttributeProto::INT);
  proto.set_i(value);
}

OnnxAttribute::OnnxAttribute(const char* name, double value) {
  proto.set_name(name);
  proto.set_type(onnx::AttributeProto::FLOAT);
  proto.set_f(static_cast<float>(value));
}

OnnxAttribute::OnnxAttribute(const char* name, const std::string& value) {
  proto.set_name(name);
  proto.set_type(onnx::AttributeProto::STRING);
  proto.set_s(value);
}

OnnxAttribute::OnnxAttribute(const char* name, const std::vector<int64_t>& value) {
  proto.set_name(name);
  proto.set_type(onnx::AttributeProto::INTS);
  proto.mutable_ints()->Add(value.begin(), value.end());
}

std::string UniqueName(absl::string_view wanted, std::set<std::string>* names) {
  std::string name(wanted.empty() ? "tensor" : wanted);
  for (int64_t i = 1; !names->insert(name).second; ++i) name = absl::StrCat(wanted, "_", i);
  return name;
}

template <typename Number>
void SetElements(DataType dtype, const std::vector<Number>& values, onnx::TensorProto* tensor) {
  tensor->set_data_type(OnnxElementType(dtype));
  std::string* const raw = tensor->mutable_raw_data();
  raw->reserve(values.size() * BytesPerElement(dtype));
  for (Number value : values) {
    switch (dtype) {
      case DataType::kFloat32:
        AppendLittleEndian(static_cast<float>(value), raw);
        break;
      case DataType::kFloat16:
        AppendLittleEndian(Float16(value), raw);
        break;
      case DataType::kBFloat16:
        AppendLittleEndian(BFloat16(value), raw);
        break;
      case DataType::kInt64:
        AppendLittleEndian(static_cast<int64_t>(value), raw);
        break;
      case DataType::kInt32:
        AppendLittleEndian(static_cast<int32_t>(value), raw);
        break;
      case DataType::kBool:
        AppendLittleEndian(static_cast<uint8_t>(value != 0), raw);
        break;
    }
  }
}

template void SetElements(DataType, const std::vector<float>&, onnx::TensorProto*);
template void SetElements(DataType, const std::vector<double>&, onnx::TensorProto*);

onnx::TensorProto* AddConstantNode(const std::string& name, onnx::GraphProto* file) {
  onnx::NodeProto* const node = file->add_node();
  node->set_op_type("Constant");
  node->set_name(name);
  node->add_output(name);
  onnx::AttributeProto* const value = node->add_attribute();
  value->set_name("value");
  value->set_type(onnx::AttributeProto::TENSOR);
  return value->mutable_t();
}

int64_t NodeExporter::Axis(absl::string_view attribute, int rank) const {
  const int64_t axis = node_.op.Int(attribute);
  return axis < 0 ? axis + rank : axis;
}

std::string NodeExporter::NewName(absl::string_view suffix) {
  return UniqueName(absl::StrCat(outputs_[0], "/", absl::AsciiStrToLower(suffix)), names_);
}

void NodeExporter::AddNode(const char* op, std::vector<std::string> inputs,
                           std::vector<std::string> outputs, OnnxAttributeList attributes,
                           const std::string& domain) {
  onnx::NodeProto* const node = file_->add_node();
  node->set_op_type(op);
  node->set_name(outputs[0]);
  for (std::string& input : inputs) node->add_input(std::move(input));
  for (std::string& output : outputs) node->add_output(std::move(output));
  for (const OnnxAttribute& attribute : attributes) *node->add_attribute() = attribute.proto;
  if (!domain.empty()) return node->set_domain(domain);  // It has one version.
  const std::optional<int64_t> first = FirstOpsetOf(*node, HasBFloat16());
  if (!first.has_value()) return Fail("it is not known which opset ", op, " is of");
  needed_opset_ = std::max(needed_opset_, *first);
}

bool NodeExporter::HasBFloat16() const {
  const auto is_bfloat16 = [](const TensorType& type) { return type.dtype == DataType::kBFloat16; };
  return std::any_of(node_.outputs.begin(), node_.outputs.end(), is_bfloat16) ||
         std::any_of(node_.inputs.begin(), node_.inputs.end(),
                     [&](TensorRef input) { return is_bfloat16(graph_.type(input)); });
}

NodeExporter::Reduction NodeExporter::ReductionOf(absl::string_view op, const std::string& x,
                                                  const std::vector<int64_t>& axes, bool keepdims) {
  Reduction reduction = {{x}, {{"keepdims", int64_t{keepdims}}}};
  if (opset_ >= kAxesAreOperands || op == "ReduceSum") {
    reduction.inputs.push_back(Ints(axes));
  } else {
    reduction.attributes.insert(reduction.attributes.begin(), {"axes", axes});
  }
  return reduction;
}

void NodeExporter::ResultOfReduction(const char* op, const std::string& x,
                                     const std::vector<int64_t>& axes, bool keepdims) {
  Reduction reduction = ReductionOf(op, x, axes, keepdims);
  Result(op, std::move(reduction.inputs), std::move(reduction.attributes));
}

std::string NodeExporter::Reduced(const char* op, const std::string& x,
                                  const std::vector<int64_t>& axes, bool keepdims) {
  Reduction reduction = ReductionOf(op, x, axes, keepdims);
  return Add(op, std::move(reduction.inputs), std::move(reduction.attributes));
}

std::string NodeExporter::Add(const char* op, std::vector<std::string> inputs,
                              OnnxAttributeList attributes) {
  return AddMany(op, std::move(inputs), 1, std::move(attributes))[0];
}

std::vector<std::string> NodeExporter::AddMany(const char* op, std::vector<std::string> inputs,
                                               int num_outputs, OnnxAttributeList attributes) {
  std::vector<std::string> outputs;
  for (int i = 0; i < num_outputs; ++i) outputs.push_back(NewName(op));
  AddNode(op, std::move(inputs), outputs, std::move(attributes));
  return outputs;
}

void NodeExporter::Result(const char* op, std::vector<std::string> inputs,
                          OnnxAttributeList attributes) {
  AddNode(op, std::move(inputs), outputs_, std::move(attributes));
}

void NodeExporter::ResultOf(const std::string& domain, const std::string& op,
                            std::vector<std::string> inputs, OnnxAttributeList attributes) {
  AddNode(op.c_str(), std::move(inputs), outputs_, std::move(attributes), domain);
}

void NodeExporter::ResultAt(int i, const char* op, std::vector<std::string> inputs,
                            OnnxAttributeList attributes) {
  AddNode(op, std::move(inputs), {outputs_[i]}, std::move(attributes));
}

std::string NodeExporter::Numbers(std::vector<int64_t> dims, const std::vector<double>& values,
                                  DataType dtype) {
  const std::string name = NewName("constant");
  onnx::TensorProto* const tensor = AddConstantNode(name, file_);
  tensor->mutable_dims()->Add(dims.begin(), dims.end());
  SetElements(dtype, values, tensor);
  return name;
}

std::string NodeExporter::Ints(std::vector<int64_t> values) {
  onnx::TensorProto* const tensor = file_->add_initializer();
  tensor->set_name(NewName("constant"));
  tensor->set_data_type(onnx::TensorProto::INT64);
  tensor->add_dims(static_cast<int64_t>(values.size()));
  for (int64_t value : values) AppendLittleEndian(value, tensor->mutable_raw_data());
  return tensor->name();
}

std::string NodeExporter::Int(int64_t value) {
  return Numbers({}, {static_cast<double>(value)}, DataType::kInt64);
}

std::string NodeExporter::Number(double value, DataType dtype) {
  return Numbers({}, {value}, dtype);
}

std::string NodeExporter::Reshaped(const std::string& x, std::vector<int64_t> shape) {
  return Add("Reshape", {x, Ints(std::move(shape))});
}

}  // namespace isomer
