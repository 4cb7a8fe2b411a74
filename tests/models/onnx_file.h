#ifndef ISOMER_TESTS_MODELS_ONNX_FILE_H_
#define ISOMER_TESTS_MODELS_ONNX_FILE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "models/onnx/onnx.pb.h"

namespace isomer {

// Writes small ONNX models for tests. A size of -1 is the symbol "batch".
class OnnxFile {
 public:
  explicit OnnxFile(int64_t opset = 13) {
    model_.set_ir_version(7);
    Opset("", opset);
  }

  onnx::ModelProto& model() { return model_; }
  std::string Bytes() const { return model_.SerializeAsString(); }

  OnnxFile& Opset(const std::string& domain, int64_t version) {
    onnx::OperatorSetIdProto* const opset = model_.add_opset_import();
    opset->set_domain(domain);
    opset->set_version(version);
    return *this;
  }
  OnnxFile& Input(const std::string& name, const std::vector<int64_t>& sizes,
                  onnx::TensorProto::DataType type = onnx::TensorProto::FLOAT) {
    SetType(name, sizes, type, model_.mutable_graph()->add_input());
    return *this;
  }
  OnnxFile& Output(const std::string& name, const std::vector<int64_t>& sizes,
                   onnx::TensorProto::DataType type = onnx::TensorProto::FLOAT) {
    SetType(name, sizes, type, model_.mutable_graph()->add_output());
    return *this;
  }
  OnnxFile& Floats(const std::string& name, const std::vector<int64_t>& dims,
                   const std::vector<float>& values) {
    *model_.mutable_graph()->add_initializer() = FloatTensor(name, dims, values);
    return *this;
  }
  OnnxFile& Ints(const std::string& name, const std::vector<int64_t>& dims,
                 const std::vector<int64_t>& values) {
    onnx::TensorProto* const tensor = model_.mutable_graph()->add_initializer();
    tensor->set_name(name);
    tensor->set_data_type(onnx::TensorProto::INT64);
    tensor->mutable_dims()->Add(dims.begin(), dims.end());
    tensor->mutable_int64_data()->Add(values.begin(), values.end());
    return *this;
  }
  // A Constant node of rank 0.
  OnnxFile& Literal(const std::string& name, float value) {
    Node("Constant", {}, {name});
    onnx::AttributeProto* const attribute = LastNode()->add_attribute();
    attribute->set_name("value");
    attribute->set_type(onnx::AttributeProto::TENSOR);
    *attribute->mutable_t() = FloatTensor("", {}, {value});
    return *this;
  }
  OnnxFile& Node(const std::string& op, const std::vector<std::string>& inputs,
                 const std::vector<std::string>& outputs, const std::string& name = "") {
    onnx::NodeProto* const node = model_.mutable_graph()->add_node();
    node->set_op_type(op);
    node->set_name(name);
    for (const std::string& input : inputs) node->add_input(input);
    for (const std::string& output : outputs) node->add_output(output);
    return *this;
  }
  // Attributes of the last node.
  OnnxFile& With(const std::string& name, int64_t value) {
    onnx::AttributeProto* const attribute = LastNode()->add_attribute();
    attribute->set_name(name);
    attribute->set_type(onnx::AttributeProto::INT);
    attribute->set_i(value);
    return *this;
  }
  OnnxFile& With(const std::string& name, const std::vector<int64_t>& values) {
    onnx::AttributeProto* const attribute = LastNode()->add_attribute();
    attribute->set_name(name);
    attribute->set_type(onnx::AttributeProto::INTS);
    attribute->mutable_ints()->Add(values.begin(), values.end());
    return *this;
  }
  onnx::NodeProto* LastNode() {
    return model_.mutable_graph()->mutable_node(model_.graph().node_size() - 1);
  }

 private:
  static onnx::TensorProto FloatTensor(const std::string& name, const std::vector<int64_t>& dims,
                                       const std::vector<float>& values) {
    onnx::TensorProto tensor;
    tensor.set_name(name);
    tensor.set_data_type(onnx::TensorProto::FLOAT);
    tensor.mutable_dims()->Add(dims.begin(), dims.end());
    tensor.mutable_float_data()->Add(values.begin(), values.end());
    return tensor;
  }
  static void SetType(const std::string& name, const std::vector<int64_t>& sizes,
                      onnx::TensorProto::DataType type, onnx::ValueInfoProto* info) {
    info->set_name(name);
    onnx::TypeProto::Tensor* const tensor = info->mutable_type()->mutable_tensor_type();
    tensor->set_elem_type(type);
    tensor->mutable_shape();
    for (int64_t size : sizes) {
      onnx::TensorShapeProto::Dimension* const dim = tensor->mutable_shape()->add_dim();
      if (size == -1) {
        dim->set_dim_param("batch");
      } else {
        dim->set_dim_value(size);
      }
    }
  }

  onnx::ModelProto model_;
};

}  // namespace isomer

#endif  // ISOMER_TESTS_MODELS_ONNX_FILE_H_
