// Comparisons and logic.
#include <limits>

#include "models/onnx/import/formulas.h"
#include "models/onnx/import/operators.h"

namespace isomer {

// Greater(a, b) is Less(b, a). And, or, exclusive or of bools are the smaller, the larger, and
// whether they differ.
void ImportComparison(NodeImporter& node) {
  const std::string& op = node.op();
  const TensorRef a = node.Operand(0), b = node.Operand(1);
  if (op == "Equal") return node.Define(0, node.Call(OpKind::kEqual, {a, b}));
  if (op == "Less") return node.Define(0, node.Call(OpKind::kLess, {a, b}));
  if (op == "LessOrEqual") return node.Define(0, node.Call(OpKind::kLessEqual, {a, b}));
  if (op == "Greater") return node.Define(0, node.Call(OpKind::kLess, {b, a}));
  if (op == "GreaterOrEqual") return node.Define(0, node.Call(OpKind::kLessEqual, {b, a}));
  const bool are_bools = node.Type(a) == DataType::kBool && node.Type(b) == DataType::kBool;
  if (!node.Expect(are_bools, "its inputs are not BOOL")) return;
  if (op == "And") return node.Define(0, node.Call(OpKind::kMinimum, {a, b}));
  if (op == "Or") return node.Define(0, node.Call(OpKind::kMaximum, {a, b}));
  DefineAs(node, 0, Apply(node, OpKind::kNot, Apply(node, OpKind::kEqual, a, b)));
}

void ImportNot(NodeImporter& node) { node.Define(0, node.Call(OpKind::kNot, {node.Operand(0)})); }

// In two's complement -1 - x.
void ImportBitwiseNot(NodeImporter& node) {
  const TensorRef x = node.Operand(0);
  if (!node.Expect(IsInteger(node.Type(x)), "its input is not of integers")) return;
  const TensorRef negative = Scaled(node, x, -1);
  DefineAs(node, 0, Apply(node, OpKind::kSub, negative, Number(node, 1, x)));
}

void ImportWhere(NodeImporter& node) {
  const TensorRef condition = node.Operand(0), yes = node.Operand(1), no = node.Operand(2);
  node.Define(0, node.Call(OpKind::kWhere, {condition, yes, no}));
}

// What is not a number is not equal to itself.
void ImportIsNaN(NodeImporter& node) {
  const TensorRef x = node.Operand(0);
  DefineAs(node, 0, Apply(node, OpKind::kNot, Apply(node, OpKind::kEqual, x, x)));
}

void ImportIsInf(NodeImporter& node) {
  const TensorRef x = node.Operand(0);
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  const bool positive = node.attributes.Int("detect_positive", 1) != 0;
  const bool negative = node.attributes.Int("detect_negative", 1) != 0;
  if (positive && negative) {
    return DefineAs(node, 0, Apply(node, OpKind::kEqual, Apply(node, OpKind::kAbs, x), kInfinity));
  }
  if (positive || negative) {
    return DefineAs(node, 0, Apply(node, OpKind::kEqual, x, positive ? kInfinity : -kInfinity));
  }
  DefineAs(node, 0, Apply(node, OpKind::kLess, x, x));  // Nowhere.
}

}  // namespace isomer
