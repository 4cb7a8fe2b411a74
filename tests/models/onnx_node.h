#ifndef ISOMER_TESTS_MODELS_ONNX_NODE_H_
#define ISOMER_TESTS_MODELS_ONNX_NODE_H_

#include <cmath>
#include <map>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "models/onnx/import/onnx_import.h"
#include "pcg/evaluation/evaluator.h"
#include "tests/models/onnx_file.h"

namespace isomer {

// One ONNX node, imported and evaluated in double.
class OnnxNodeRun {
 public:
  explicit OnnxNodeRun(const std::string& op, int64_t opset = 17) : op_(op), file_(opset) {}

  // The next operand, as an input of the graph.
  OnnxNodeRun& X(const std::vector<int64_t>& dims, std::vector<double> values,
                 onnx::TensorProto::DataType type = onnx::TensorProto::FLOAT) {
    operands_.push_back("x" + std::to_string(operands_.size()));
    file_.Input(operands_.back(), dims, type);
    Array<double> array(dims);
    array.data = std::move(values);
    inputs_[operands_.back()] = std::move(array);
    return *this;
  }
  // The same without values, of any size, where nothing is to be run.
  OnnxNodeRun& Open(const std::vector<int64_t>& dims,
                    onnx::TensorProto::DataType type = onnx::TensorProto::FLOAT) {
    operands_.push_back("x" + std::to_string(operands_.size()));
    file_.Input(operands_.back(), dims, type);
    return *this;
  }
  // The next operand, as an initializer; or left out.
  OnnxNodeRun& Floats(const std::vector<int64_t>& dims, const std::vector<float>& values) {
    operands_.push_back("c" + std::to_string(operands_.size()));
    file_.Floats(operands_.back(), dims, values);
    return *this;
  }
  OnnxNodeRun& Ints(const std::vector<int64_t>& dims, const std::vector<int64_t>& values) {
    operands_.push_back("c" + std::to_string(operands_.size()));
    file_.Ints(operands_.back(), dims, values);
    return *this;
  }
  OnnxNodeRun& Absent() {
    operands_.push_back("");
    return *this;
  }

  OnnxNodeRun& With(const std::string& name, int64_t value) {
    New(name, onnx::AttributeProto::INT)->set_i(value);
    return *this;
  }
  OnnxNodeRun& With(const std::string& name, const std::vector<int64_t>& values) {
    New(name, onnx::AttributeProto::INTS)->mutable_ints()->Add(values.begin(), values.end());
    return *this;
  }
  OnnxNodeRun& With(const std::string& name, const std::string& value) {
    New(name, onnx::AttributeProto::STRING)->set_s(value);
    return *this;
  }
  OnnxNodeRun& WithFloat(const std::string& name, float value) {
    New(name, onnx::AttributeProto::FLOAT)->set_f(value);
    return *this;
  }

  absl::StatusOr<Model> Import(int num_outputs = 1) {
    std::vector<std::string> outputs;
    for (int i = 0; i < num_outputs; ++i) outputs.push_back("y" + std::to_string(i));
    file_.Node(op_, operands_, outputs);
    for (onnx::AttributeProto& attribute : attributes_) {
      *file_.LastNode()->add_attribute() = attribute;
    }
    for (const std::string& output : outputs) {
      file_.model().mutable_graph()->add_output()->set_name(output);
    }
    return ParseOnnx(file_.Bytes(), "node.onnx", {});
  }

  // The outputs; none and a failed test if something is refused.
  std::vector<Array<double>> Run(int num_outputs = 1) {
    const absl::StatusOr<Model> model = Import(num_outputs);
    EXPECT_TRUE(model.ok()) << op_ << ": " << model.status();
    if (!model.ok()) return std::vector<Array<double>>(num_outputs);
    std::map<NodeId, Value<double>> leaves;
    for (int id = 0; id < model->graph.num_nodes(); ++id) {
      const isomer::Node& node = model->graph.node(id);
      if (!IsLeaf(node.op.kind())) continue;
      Array<double> array(node.outputs[0].Sizes());
      // Also a weight may be an input of the file.
      if (const auto given = inputs_.find(node.name); given != inputs_.end()) {
        array = given->second;
      } else if (node.op.kind() != OpKind::kInput) {
        const StoredValues& values = model->weights.at(node.name);
        array.data.assign(values.begin(), values.end());
      }
      leaves[NodeId{id}] = {node.outputs[0], {std::move(array)}};
    }
    const auto values = EvaluateGraph(model->graph, leaves);
    EXPECT_TRUE(values.ok()) << op_ << ": " << values.status();
    if (!values.ok()) return std::vector<Array<double>>(num_outputs);
    std::vector<Array<double>> results;
    for (const auto& [name, tensor] : model->graph.outputs()) {
      results.push_back((*values)[tensor.node.value][tensor.output].parts[0]);
    }
    return results;
  }

 private:
  onnx::AttributeProto* New(const std::string& name, onnx::AttributeProto::AttributeType type) {
    attributes_.emplace_back();
    attributes_.back().set_name(name);
    attributes_.back().set_type(type);
    return &attributes_.back();
  }

  const std::string op_;
  OnnxFile file_;
  std::vector<std::string> operands_;
  std::vector<onnx::AttributeProto> attributes_;
  std::map<std::string, Array<double>> inputs_;
};

inline void ExpectValues(const Array<double>& computed, const std::vector<int64_t>& shape,
                         const std::vector<double>& expected, const std::string& what = "") {
  ASSERT_EQ(computed.shape, shape) << what;
  ASSERT_EQ(computed.data.size(), expected.size()) << what;
  for (size_t i = 0; i < expected.size(); ++i) {
    if (computed.data[i] == expected[i]) continue;  // also infinities
    EXPECT_NEAR(computed.data[i], expected[i], 2e-6 * (1 + std::abs(expected[i])))
        << what << " at " << i;
  }
}

}  // namespace isomer

#endif  // ISOMER_TESTS_MODELS_ONNX_NODE_H_
