// Arithmetic and elementary functions, and operators that do nothing to a value.
#include <numbers>
#include <optional>

#include "models/onnx/import/formulas.h"
#include "models/onnx/import/operators.h"

namespace isomer {
namespace {

void ImportBinary(NodeImporter& node, OpKind kind) {
  const TensorRef a = node.Operand(0), b = node.Operand(1);
  node.Define(0, node.Call(kind, {a, b}));
}

// The result has the sizes `to`.
bool BroadcastsTo(const Sizes& from, const Sizes& to) {
  if (from.size() > to.size()) return false;
  for (size_t i = 0; i < from.size(); ++i) {
    if (from[i] != 1 && from[i] != to[to.size() - from.size() + i]) return false;
  }
  return true;
}

bool IsFloatOperand(NodeImporter& node, TensorRef x) { return IsFloat(node.Type(x)); }

// (exp(x) + exp(-x)) / 2
TensorRef Cosh(NodeImporter& node, TensorRef x) {
  const TensorRef up = Apply(node, OpKind::kExp, x);
  const TensorRef down = Apply(node, OpKind::kExp, Scaled(node, x, -1));
  return Scaled(node, Apply(node, OpKind::kAdd, up, down), 0.5);
}

// atan(x / sqrt(1 - x^2)), which at +-1 is the arc tangent of infinity.
TensorRef Asin(NodeImporter& node, TensorRef x) {
  const TensorRef square = Apply(node, OpKind::kMul, x, x);
  const TensorRef rest = Apply(node, OpKind::kSub, Number(node, 1, x), square);
  const TensorRef ratio = Apply(node, OpKind::kDiv, x, Apply(node, OpKind::kSqrt, rest));
  return Apply(node, OpKind::kAtan, ratio);
}

// log(|x| + sqrt(x^2 + shift)): the inverse of sinh (shift 1) and of cosh (shift -1), for x >= 0.
TensorRef InverseHyperbolic(NodeImporter& node, TensorRef x, double shift) {
  const TensorRef square = Apply(node, OpKind::kMul, x, x);
  const TensorRef root = Apply(node, OpKind::kSqrt, Apply(node, OpKind::kAdd, square, shift));
  return Apply(node, OpKind::kLog, Apply(node, OpKind::kAdd, x, root));
}

TensorRef Trigonometric(NodeImporter& node, TensorRef x) {
  const std::string& op = node.op();
  if (op == "Tan") {
    return Apply(node, OpKind::kDiv, Apply(node, OpKind::kSin, x), Apply(node, OpKind::kCos, x));
  }
  if (op == "Cosh") return Cosh(node, x);
  if (op == "Sinh") {  // tanh * cosh: the difference of two exponentials would cancel near 0.
    return Apply(node, OpKind::kMul, Apply(node, OpKind::kTanh, x), Cosh(node, x));
  }
  if (op == "Asin") return Asin(node, x);
  if (op == "Acos") {
    return Apply(node, OpKind::kSub, Number(node, std::numbers::pi / 2, x), Asin(node, x));
  }
  if (op == "Acosh") return InverseHyperbolic(node, x, -1);
  if (op == "Asinh") {
    const TensorRef size = InverseHyperbolic(node, Apply(node, OpKind::kAbs, x), 1);
    return Apply(node, OpKind::kMul, Apply(node, OpKind::kSign, x), size);
  }
  // Atanh: log((1 + x) / (1 - x)) / 2
  const TensorRef one = Number(node, 1, x);
  const TensorRef ratio = Apply(node, OpKind::kDiv, Apply(node, OpKind::kAdd, one, x),
                                Apply(node, OpKind::kSub, one, x));
  return Scaled(node, Apply(node, OpKind::kLog, ratio), 0.5);
}

// The quotient rounded towards 0. Of integers it is the quotient itself.
TensorRef Truncated(NodeImporter& node, TensorRef quotient) {
  if (!IsFloatOperand(node, quotient)) return quotient;
  return Where(node, IsNegative(node, quotient), Apply(node, OpKind::kCeil, quotient),
               Apply(node, OpKind::kFloor, quotient));
}

}  // namespace

// A constant 0, such as a mask that leaves nothing out, is no summand.
void ImportAdd(NodeImporter& node) {
  for (int side : {0, 1}) {
    const std::optional<Sizes> zero = node.SizesIfEverywhere(side, 0);
    if (!zero || node.SizesIfEverywhere(1 - side, 0)) continue;
    const TensorRef x = node.Operand(1 - side);
    if (node.ok() && BroadcastsTo(*zero, node.Sizes(x))) return DefineAs(node, 0, x);
  }
  ImportBinary(node, OpKind::kAdd);
}
void ImportSub(NodeImporter& node) { ImportBinary(node, OpKind::kSub); }

// By a constant scalar: Scale.
void ImportMul(NodeImporter& node) {
  for (int side : {0, 1}) {
    if (node.Constant(side) != nullptr) continue;
    const TensorRef x = node.Operand(side);
    const OnnxTensor* const factor = node.Scalar(1 - side, x);
    if (factor == nullptr || !factor->is_literal) continue;
    return node.Define(0, node.Call({OpKind::kScale, {{"factor", factor->Number(0)}}}, {x}));
  }
  ImportBinary(node, OpKind::kMul);
}

// Integers are rounded towards 0, which a product with the inverse would not do.
void ImportDiv(NodeImporter& node) {
  if (node.Constant(0) == nullptr) {
    const TensorRef x = node.Operand(0);
    const OnnxTensor* const divisor = node.Scalar(1, x);
    if (divisor != nullptr && divisor->is_literal && IsFloatOperand(node, x)) {
      if (!node.Expect(divisor->Number(0) != 0, "division by the constant 0")) return;
      const Operator scale = {OpKind::kScale, {{"factor", 1 / divisor->Number(0)}}};
      return node.Define(0, node.Call(scale, {x}));
    }
  }
  ImportBinary(node, OpKind::kDiv);
}

void ImportNeg(NodeImporter& node) {
  node.Define(0, node.Call({OpKind::kScale, {{"factor", -1.0}}}, {node.Operand(0)}));
}

// The remainder has the sign of the divisor, with fmod that of the dividend.
void ImportMod(NodeImporter& node) {
  const TensorRef a = node.Operand(0), b = node.Operand(1);
  const bool is_fmod = node.attributes.Int("fmod", 0) == 1;
  const TensorRef quotient = Truncated(node, Apply(node, OpKind::kDiv, a, b));
  const TensorRef remainder = Apply(node, OpKind::kSub, a, Apply(node, OpKind::kMul, quotient, b));
  if (is_fmod) return DefineAs(node, 0, remainder);
  const TensorRef differs =
      Apply(node, OpKind::kNot,
            Apply(node, OpKind::kEqual, IsNegative(node, remainder), IsNegative(node, b)));
  const TensorRef moved = Apply(node, OpKind::kAdd, remainder, b);
  const TensorRef is_zero = Apply(node, OpKind::kEqual, remainder, 0);
  DefineAs(node, 0, Where(node, is_zero, remainder, Where(node, differs, moved, remainder)));
}

// The exponent may be of another type; the result has that of the base.
void ImportPow(NodeImporter& node) {
  const TensorRef x = node.Operand(0);
  const OnnxTensor* const constant = node.Scalar(1, x);
  if (constant != nullptr) {
    const double exponent = constant->Number(0);
    if (exponent == 1) return node.Define(0, x);
    if (exponent == 2) return node.Define(0, node.Call(OpKind::kMul, {x, x}));
    if (exponent == 3) {
      return node.Define(0,
                         node.Call(OpKind::kMul, {node.Call(OpKind::kMul, {x, x}, "/square"), x}));
    }
    if (exponent == 0.5 && IsFloatOperand(node, x)) {
      return node.Define(0, node.Call(OpKind::kSqrt, {x}));
    }
  }
  const DataType type = node.Type(x);
  const DataType computed = IsFloat(type) ? type : DataType::kFloat32;
  const TensorRef base = Cast(node, x, computed);
  const TensorRef exponent = Cast(node, node.Operand(1), computed);
  DefineAs(node, 0, Cast(node, Apply(node, OpKind::kPow, base, exponent), type));
}

void ImportUnary(NodeImporter& node) {
  static constexpr struct {
    const char* name;
    OpKind kind;
  } kOperators[] = {{"Abs", OpKind::kAbs},         {"Atan", OpKind::kAtan},
                    {"Ceil", OpKind::kCeil},       {"Cos", OpKind::kCos},
                    {"Erf", OpKind::kErf},         {"Exp", OpKind::kExp},
                    {"Floor", OpKind::kFloor},     {"HardSwish", OpKind::kHardSwish},
                    {"Log", OpKind::kLog},         {"Reciprocal", OpKind::kReciprocal},
                    {"Relu", OpKind::kRelu},       {"Round", OpKind::kRound},
                    {"Sigmoid", OpKind::kSigmoid}, {"Sign", OpKind::kSign},
                    {"Sin", OpKind::kSin},         {"Softplus", OpKind::kSoftplus},
                    {"Sqrt", OpKind::kSqrt},       {"Tanh", OpKind::kTanh}};
  const TensorRef x = node.Operand(0);
  for (const auto& [name, kind] : kOperators) {
    if (node.op() == name) return node.Define(0, node.Call(kind, {x}));
  }
  if (node.op() == "Erfc") {  // Not ONNX's, but what tf2onnx writes of Keras's gelu.
    const TensorRef erf = Apply(node, OpKind::kErf, x);
    return DefineAs(node, 0, Apply(node, OpKind::kSub, Number(node, 1, x), erf));
  }
  DefineAs(node, 0, Trigonometric(node, x));
}

void ImportIdentity(NodeImporter& node) { node.Define(0, node.Operand(0)); }

void ImportCast(NodeImporter& node) {
  const TensorRef x = node.Operand(0);
  node.attributes.Ignore("saturate");  // of 8-bit floats, which are not read
  node.attributes.Ignore("round_mode");
  if (node.op() == "CastLike") {  // Of a constant not even the elements are needed.
    const OnnxTensor* const like = node.Constant(1);
    const DataType type = like != nullptr ? like->dtype : node.Type(node.Operand(1));
    return DefineAs(node, 0, Cast(node, x, type));
  }
  const absl::StatusOr<DataType> type =
      OnnxDataType(static_cast<int>(node.attributes.Int("to", 0)));
  if (!type.ok()) return node.Refuse(type.status().message());
  DefineAs(node, 0, Cast(node, x, *type));
}

// A sum, a mean, the largest or the smallest of any number of operands.
void ImportVariadic(NodeImporter& node) {
  const OpKind kind = node.op() == "Max"   ? OpKind::kMaximum
                      : node.op() == "Min" ? OpKind::kMinimum
                                           : OpKind::kAdd;
  TensorRef result = node.Operand(0);
  for (int i = 1; i < node.num_inputs(); ++i) {
    result = Apply(node, kind, result, node.Operand(i));
  }
  if (node.op() == "Mean") result = Scaled(node, result, 1.0 / node.num_inputs());
  DefineAs(node, 0, result);
}

// Inference drops nothing. In training the mask is a function of the seed, of the position in the
// graph and of the place of the element, so every partition of the network drops the same ones; it
// is not the one that another program draws.
void ImportDropout(NodeImporter& node) {
  const TensorRef x = node.Operand(0);
  double ratio = node.attributes.Float("ratio", 0.5);
  node.attributes.Ignore("seed");
  bool is_training = false;
  if (node.opset() >= 12) {
    if (node.HasInput(1)) {
      const OnnxTensor* const constant = node.Constant(1);
      if (constant == nullptr || constant->size() != 1) return node.Refuse("ratio is no constant");
      ratio = constant->Number(0);
    }
    if (node.HasInput(2)) {
      const OnnxTensor* const constant = node.Constant(2);
      if (constant == nullptr || constant->size() != 1) {
        return node.Refuse("training_mode is no constant");
      }
      is_training = constant->Number(0) != 0;
    }
  }
  if (!node.Expect(ratio >= 0 && ratio < 1, "ratio is ", ratio, ", not in [0, 1)")) return;
  const bool drops = is_training && ratio > 0;
  const Operator dropout = {OpKind::kDropout, {{"rate", ratio}, {"salt", NextSalt(node)}}};
  const TensorRef y = drops ? node.Call(dropout, {x, RandomSeed(node)}) : x;
  node.Define(0, y);
  if (!IsWanted(node, 1) || !node.ok()) return;
  // The mask: what becomes of ones.
  const TensorRef ones = Filled(node, 1, node.Sizes(x), x);
  const TensorRef kept = drops ? node.Call(dropout, {ones, RandomSeed(node)}, "/mask") : ones;
  DefineAs(node, 1, Cast(node, kept, DataType::kBool));
}

}  // namespace isomer
