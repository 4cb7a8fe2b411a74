// Elementwise operators.
#include <cmath>

#include "models/onnx/export/export_operators.h"
#include "models/onnx/tensor.h"

namespace isomer {
namespace {

// What ONNX calls operators that need no attributes.
const char* SimpleName(OpKind kind) {
  switch (kind) {
    case OpKind::kMatMul:
      return "MatMul";
    case OpKind::kAdd:
      return "Add";
    case OpKind::kSub:
      return "Sub";
    case OpKind::kMul:
      return "Mul";
    case OpKind::kDiv:
      return "Div";
    case OpKind::kPow:
      return "Pow";
    case OpKind::kEqual:
      return "Equal";
    case OpKind::kLess:
      return "Less";
    case OpKind::kLessEqual:
      return "LessOrEqual";
    case OpKind::kRelu:
      return "Relu";
    case OpKind::kTanh:
      return "Tanh";
    case OpKind::kSigmoid:
      return "Sigmoid";
    case OpKind::kExp:
      return "Exp";
    case OpKind::kHardSwish:
      return "HardSwish";
    case OpKind::kSoftplus:
      return "Softplus";
    case OpKind::kLog:
      return "Log";
    case OpKind::kSqrt:
      return "Sqrt";
    case OpKind::kReciprocal:
      return "Reciprocal";
    case OpKind::kErf:
      return "Erf";
    case OpKind::kSin:
      return "Sin";
    case OpKind::kCos:
      return "Cos";
    case OpKind::kAtan:
      return "Atan";
    case OpKind::kAbs:
      return "Abs";
    case OpKind::kSign:
      return "Sign";
    case OpKind::kFloor:
      return "Floor";
    case OpKind::kCeil:
      return "Ceil";
    case OpKind::kRound:
      return "Round";
    case OpKind::kNot:
      return "Not";
    case OpKind::kWhere:
      return "Where";
    default:
      return nullptr;
  }
}

std::vector<std::string> Inputs(const NodeExporter& node) {
  std::vector<std::string> inputs;
  for (int i = 0; i < node.num_inputs(); ++i) inputs.push_back(node.In(i));
  return inputs;
}

}  // namespace

void ExportSimple(NodeExporter& node) { node.Result(SimpleName(node.kind()), Inputs(node)); }

// Of truth values: or, and.
void ExportMaximum(NodeExporter& node) {
  const bool is_max = node.kind() == OpKind::kMaximum;
  const bool is_bool = node.InType(0).dtype == DataType::kBool;
  node.Result(is_bool ? (is_max ? "Or" : "And") : (is_max ? "Max" : "Min"), Inputs(node));
}

void ExportScale(NodeExporter& node) {
  const std::string factor = node.Number(node.op().Number("factor"), node.InType(0).dtype);
  node.Result("Mul", {node.In(0), factor});
}

std::string GeluOf(NodeExporter& node, const std::string& x, DataType dtype) {
  const std::string scaled = node.Add("Div", {x, node.Number(std::sqrt(2.0), dtype)});
  const std::string erf = node.Add("Erf", {scaled});
  const std::string one_more = node.Add("Add", {erf, node.Number(1, dtype)});
  const std::string product = node.Add("Mul", {x, one_more});
  return node.Add("Mul", {product, node.Number(0.5, dtype)});
}

std::string SwishOf(NodeExporter& node, const std::string& x) {
  return node.Add("Mul", {x, node.Add("Sigmoid", {x})});
}

void ExportGelu(NodeExporter& node) {
  node.Result("Identity", {GeluOf(node, node.In(0), node.InType(0).dtype)});
}

// x Sigmoid(2 slope (x + cubic x^3))
void ExportGeluTanh(NodeExporter& node) {
  const std::string& x = node.In(0);
  const auto number = [&](double value) { return node.Number(value, node.InType(0).dtype); };
  const std::string cube = node.Add("Mul", {node.Add("Mul", {x, x}), x});
  const std::string curved = node.Add("Mul", {cube, number(node.op().Number("cubic"))});
  const std::string inner = node.Add("Add", {x, curved});
  const std::string scaled = node.Add("Mul", {inner, number(2 * node.op().Number("slope"))});
  node.Result("Mul", {x, node.Add("Sigmoid", {scaled})});
}

void ExportSwish(NodeExporter& node) { node.Result("Identity", {SwishOf(node, node.In(0))}); }

void ExportElementwiseWithNumbers(NodeExporter& node) {
  OnnxAttributeList attributes = {{"alpha", node.op().Number("alpha")}};
  if (node.kind() == OpKind::kHardSigmoid) {
    attributes.push_back({"beta", node.op().Number("beta")});
  }
  node.Result(node.kind() == OpKind::kHardSigmoid ? "HardSigmoid"
              : node.kind() == OpKind::kElu       ? "Elu"
                                                  : "LeakyRelu",
              {node.In(0)}, attributes);
}

void ExportClip(NodeExporter& node) {
  const DataType dtype = node.InType(0).dtype;
  node.Result("Clip", {node.In(0), node.Number(node.op().Number("min"), dtype),
                       node.Number(node.op().Number("max"), dtype)});
}

void ExportCast(NodeExporter& node) {
  node.Result("Cast", {node.In(0)}, {{"to", int64_t{OnnxElementType(node.OutType(0).dtype)}}});
}

}  // namespace isomer
