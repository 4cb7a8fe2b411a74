#include "models/onnx/export/opsets.h"

#include <algorithm>
#include <iterator>
#include <string>

#include "absl/strings/string_view.h"

namespace isomer {
namespace {

// From the history of ONNX's schemas: the first opset whose form of the operator is the one written
// (of a reduction but ReduceSum, either form), and the first that takes bfloat16.
struct OnnxForm {
  absl::string_view op;
  int64_t since, since_bfloat16;
};

// In order of names. Truth values have no bfloat16.
constexpr OnnxForm kForms[] = {
    {"Abs", 13, 13},
    {"Add", 14, 14},
    {"And", 7, 7},
    {"ArgMax", 13, 13},
    {"ArgMin", 13, 13},
    {"Atan", 7, 22},
    {"AveragePool", 11, 22},
    {"BatchNormalization", 15, 15},
    {"Cast", 13, 13},
    {"Ceil", 13, 13},
    {"Clip", 13, 13},
    {"Concat", 13, 13},
    {"Constant", 13, 13},
    {"Conv", 11, 22},
    {"ConvTranspose", 11, 22},
    {"Cos", 7, 22},
    {"CumSum", 14, 14},
    {"Div", 14, 14},
    {"Elu", 6, 22},
    {"Equal", 13, 13},
    {"Erf", 13, 13},
    {"Exp", 13, 13},
    {"Expand", 13, 13},
    {"Floor", 13, 13},
    {"Gather", 13, 13},
    {"GatherElements", 13, 13},
    {"GatherND", 13, 13},
    {"GlobalAveragePool", 1, 22},
    {"HardSigmoid", 6, 22},
    {"HardSwish", 14, 22},
    {"Identity", 16, 16},
    {"InstanceNormalization", 6, 22},
    {"LayerNormalization", 17, 17},
    {"LeakyRelu", 16, 16},
    {"Less", 13, 13},
    {"LessOrEqual", 16, 16},
    {"Log", 13, 13},
    {"LogSoftmax", 13, 13},
    {"MatMul", 13, 13},
    {"Max", 13, 13},
    {"MaxPool", 12, 22},
    {"Min", 13, 13},
    {"Mul", 14, 14},
    {"Not", 1, 1},
    {"Or", 7, 7},
    {"Pad", 13, 13},
    {"Pow", 15, 15},
    {"Reciprocal", 13, 13},
    {"ReduceMax", 13, 13},
    {"ReduceMean", 13, 13},
    {"ReduceMin", 13, 13},
    {"ReduceProd", 13, 13},
    {"ReduceSum", 13, 13},
    {"Relu", 14, 14},
    {"Reshape", 14, 14},
    {"Round", 11, 22},
    {"ScatterElements", 16, 16},
    {"Sigmoid", 13, 13},
    {"Sign", 13, 13},
    {"Sin", 7, 22},
    {"Slice", 13, 13},
    {"Softmax", 13, 13},
    {"SoftmaxCrossEntropyLoss", 13, 13},
    {"Softplus", 1, 22},
    {"Split", 13, 13},
    {"Sqrt", 13, 13},
    {"Squeeze", 13, 13},
    {"Sub", 14, 14},
    {"Tanh", 13, 13},
    {"TopK", 11, 24},
    {"Transpose", 13, 13},
    {"Trilu", 14, 14},
    {"Unsqueeze", 13, 13},
    {"Where", 16, 16},
};

// Values of attributes that came later than their operators.
struct OnnxValue {
  absl::string_view op, attribute, value;
  int64_t since;
};

constexpr OnnxValue kValues[] = {
    {"Pad", "mode", "wrap", 19},
    {"ScatterElements", "reduction", "max", 18},
    {"ScatterElements", "reduction", "min", 18},
};

}  // namespace

std::optional<int64_t> FirstOpsetOf(const onnx::NodeProto& node, bool bfloat16) {
  const auto form = std::find_if(std::begin(kForms), std::end(kForms),
                                 [&](const OnnxForm& each) { return each.op == node.op_type(); });
  if (form == std::end(kForms)) return std::nullopt;
  int64_t opset = bfloat16 ? form->since_bfloat16 : form->since;
  for (const OnnxValue& value : kValues) {
    if (value.op != node.op_type()) continue;
    for (const onnx::AttributeProto& attribute : node.attribute()) {
      if (attribute.name() == value.attribute && attribute.s() == value.value) {
        opset = std::max(opset, value.since);
      }
    }
  }
  return opset;
}

int64_t IrVersionOf(int64_t opset) {
  return opset <= 18 ? 8 : opset <= 20 ? 9 : opset <= 22 ? 10 : opset == 23 ? 11 : 12;
}

}  // namespace isomer
