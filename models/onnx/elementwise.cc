// Elementwise operators, and those that do nothing to a value.
#include "models/onnx/operators.h"

namespace isomer {
namespace {

TensorRef Scaled(NodeImporter& node, TensorRef x, double factor) {
  return node.Call({OpKind::kScale, {{"factor", factor}}}, {x});
}

void ImportBinary(NodeImporter& node, OpKind kind) {
  const TensorRef a = node.Operand(0), b = node.Operand(1);
  node.Define(0, node.Call(kind, {a, b}));
}

}  // namespace

void ImportAdd(NodeImporter& node) { ImportBinary(node, OpKind::kAdd); }
void ImportSub(NodeImporter& node) { ImportBinary(node, OpKind::kSub); }

// By a constant scalar: Scale.
void ImportMul(NodeImporter& node) {
  for (int side : {0, 1}) {
    if (node.Constant(side) != nullptr) continue;
    const TensorRef x = node.Operand(side);
    const OnnxTensor* const factor = node.Scalar(1 - side, x);
    if (factor == nullptr || !factor->is_literal) continue;
    return node.Define(0, Scaled(node, x, factor->Number(0)));
  }
  ImportBinary(node, OpKind::kMul);
}

void ImportDiv(NodeImporter& node) {
  if (node.Constant(0) == nullptr) {
    const TensorRef x = node.Operand(0);
    const OnnxTensor* const divisor = node.Scalar(1, x);
    if (divisor != nullptr && divisor->is_literal) {
      if (!node.Expect(divisor->Number(0) != 0, "division by the constant 0")) return;
      return node.Define(0, Scaled(node, x, 1 / divisor->Number(0)));
    }
  }
  ImportBinary(node, OpKind::kDiv);
}

void ImportNeg(NodeImporter& node) { node.Define(0, Scaled(node, node.Operand(0), -1)); }

// Pow(x, 2) is Mul(x, x); Pow(x, 1) is x.
void ImportPow(NodeImporter& node) {
  const TensorRef x = node.Operand(0);
  const OnnxTensor* const exponent = node.Scalar(1, x);
  const double value = exponent == nullptr ? 0 : exponent->Number(0);
  if (!node.Expect(value == 1 || value == 2, "the exponent must be the constant 1 or 2")) return;
  node.Define(0, value == 1 ? x : node.Call(OpKind::kMul, {x, x}));
}

void ImportUnary(NodeImporter& node) {
  const OpKind kind = node.op() == "Relu"    ? OpKind::kRelu
                      : node.op() == "Gelu"  ? OpKind::kGelu
                      : node.op() == "Swish" ? OpKind::kSwish
                      : node.op() == "Tanh"  ? OpKind::kTanh
                      : node.op() == "Exp"   ? OpKind::kExp
                                             : OpKind::kSigmoid;
  node.Define(0, node.Call(kind, {node.Operand(0)}));
}

void ImportPartOfPattern(NodeImporter& node) {
  node.Fail(
      node.op() == "Erf"
          ? "Erf is read only as a part of Gelu, x * 0.5 * (1 + Erf(x / sqrt(2)))"
          : "Sqrt is read only as a part of LayerNorm over the last dim, with weight and bias");
}

void ImportIdentity(NodeImporter& node) { node.Define(0, node.Operand(0)); }

// Between integers of any width, or from FLOAT to FLOAT: nothing.
void ImportCast(NodeImporter& node) {
  const int64_t to = node.attributes.Int("to", 0);
  const absl::StatusOr<DataType> type = OnnxDataType(static_cast<int>(to));
  if (!node.Expect(type.ok(), type.status().message())) return;
  const TensorRef x = node.Operand(0);
  if (!node.Expect(node.Type(x) == *type, "casts between integers and floats are not read")) return;
  node.Define(0, x);
}

// Inference does not drop; training with it would need random numbers.
void ImportDropout(NodeImporter& node) {
  node.attributes.Ignore("ratio");
  node.attributes.Ignore("seed");
  if (node.HasInput(2)) {
    const std::vector<int64_t> training_mode = node.ConstantInts(2);
    if (!node.Expect(training_mode == std::vector<int64_t>{0},
                     "training_mode is set; export the model in eval mode")) {
      return;
    }
  }
  node.Define(0, node.Operand(0));
}

}  // namespace isomer
