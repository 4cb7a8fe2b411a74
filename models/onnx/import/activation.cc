// Activations, those that are not operators of their own as the formulas that define them.
#include <cmath>
#include <limits>
#include <numbers>
#include <utility>

#include "models/onnx/import/formulas.h"
#include "models/onnx/import/operators.h"

namespace isomer {
namespace {

// max(0, x) + min(0, alpha (exp(x / alpha) - 1))
TensorRef Celu(NodeImporter& node, TensorRef x, double alpha) {
  const Operator elu = {OpKind::kElu, {{"alpha", 1.0}}};
  return Scaled(node, node.Call(elu, {Scaled(node, x, 1 / alpha)}, "/elu"), alpha);
}

// x for |x| > lambd, moved by bias towards 0; 0 between.
TensorRef Shrink(NodeImporter& node, TensorRef x) {
  const double bias = node.attributes.Float("bias", 0), lambd = node.attributes.Float("lambd", 0.5);
  const TensorRef below = Apply(node, OpKind::kLess, x, -lambd);
  const TensorRef above = Apply(node, OpKind::kLess, Number(node, lambd, x), x);
  const TensorRef zero = Number(node, 0, x);
  return Where(node, below, Apply(node, OpKind::kAdd, x, bias),
               Where(node, above, Apply(node, OpKind::kSub, x, bias), zero));
}

}  // namespace

void ImportGelu(NodeImporter& node) {
  const TensorRef x = node.Operand(0);
  const std::string approximate = node.attributes.String("approximate", "none");
  if (approximate == "none") return node.Define(0, node.Call(OpKind::kGelu, {x}));
  if (!node.Expect(approximate == "tanh", "approximate is ", QuotedName(approximate))) return;
  const Operator gelu = {OpKind::kGeluTanh,
                         {{"slope", std::sqrt(2 / std::numbers::pi)}, {"cubic", 0.044715}}};
  node.Define(0, node.Call(gelu, {x}));
}

// x * Sigmoid(alpha x)
void ImportSwish(NodeImporter& node) {
  const TensorRef x = node.Operand(0);
  const double alpha = node.attributes.Float("alpha", 1);
  if (alpha == 1) return node.Define(0, node.Call(OpKind::kSwish, {x}));
  const TensorRef gate = Apply(node, OpKind::kSigmoid, Scaled(node, x, alpha));
  DefineAs(node, 0, Apply(node, OpKind::kMul, x, gate));
}

void ImportActivation(NodeImporter& node) {
  const std::string& op = node.op();
  const TensorRef x = node.Operand(0);
  TensorRef y;
  if (op == "LeakyRelu") {
    y = node.Call({OpKind::kLeakyRelu, {{"alpha", node.attributes.Float("alpha", 0.01f)}}}, {x});
  } else if (op == "Elu") {
    y = node.Call({OpKind::kElu, {{"alpha", node.attributes.Float("alpha", 1)}}}, {x});
  } else if (op == "HardSigmoid") {
    y = node.Call({OpKind::kHardSigmoid,
                   {{"alpha", node.attributes.Float("alpha", 0.2f)},
                    {"beta", node.attributes.Float("beta", 0.5)}}},
                  {x});
  } else if (op == "Celu") {
    const double alpha = node.attributes.Float("alpha", 1);
    if (!node.Expect(alpha != 0, "alpha is 0")) return;
    y = Celu(node, x, alpha);
  } else if (op == "Selu") {
    const double alpha = node.attributes.Float("alpha", 1.67326319217681884765625);
    const double gamma = node.attributes.Float("gamma", 1.05070102214813232421875);
    y = Scaled(node, node.Call({OpKind::kElu, {{"alpha", alpha}}}, {x}, "/elu"), gamma);
  } else if (op == "ThresholdedRelu") {
    const double alpha = node.attributes.Float("alpha", 1);
    const TensorRef above = Apply(node, OpKind::kLess, Number(node, alpha, x), x);
    y = Where(node, above, x, Number(node, 0, x));
  } else if (op == "Softsign") {
    const TensorRef size = Apply(node, OpKind::kAbs, x);
    y = Apply(node, OpKind::kDiv, x, Apply(node, OpKind::kAdd, size, 1));
  } else if (op == "Mish") {
    const TensorRef gate = Apply(node, OpKind::kTanh, Apply(node, OpKind::kSoftplus, x));
    y = Apply(node, OpKind::kMul, x, gate);
  } else {
    y = Shrink(node, x);
  }
  DefineAs(node, 0, y);
}

// The slope is a tensor that broadcasts to x; before opset 7 it was one per channel, dim 1.
void ImportPRelu(NodeImporter& node) {
  const TensorRef x = node.Operand(0);
  TensorRef slope = node.Operand(1);
  if (node.ok() && node.opset() < 7 && node.Rank(slope) == 1 && node.Rank(x) >= 2) {
    Sizes per_channel(node.Rank(x), 1);
    per_channel[1] = node.Sizes(slope)[0];
    slope = Reshaped(node, slope, std::move(per_channel));
  }
  const TensorRef scaled = Apply(node, OpKind::kMul, x, slope);
  DefineAs(node, 0, Where(node, IsNegative(node, x), scaled, x));
}

// Bounds are operands from opset 11 on, and attributes before. Max(x, min) comes first, so that
// where the bounds cross the upper one counts.
void ImportClip(NodeImporter& node) {
  TensorRef x = node.Operand(0);
  constexpr double kLargest = std::numeric_limits<float>::max();
  const bool old = node.opset() < 11;
  const bool has_low = old ? node.attributes.Has("min") : node.HasInput(1);
  const bool has_high = old ? node.attributes.Has("max") : node.HasInput(2);
  const OnnxTensor *const low_constant = node.Constant(1), *const high_constant = node.Constant(2);
  double low = -kLargest, high = kLargest;
  if (old) {
    low = node.attributes.Float("min", -kLargest);
    high = node.attributes.Float("max", kLargest);
  } else if (low_constant != nullptr && high_constant != nullptr && low_constant->size() == 1 &&
             high_constant->size() == 1) {
    low = low_constant->Number(0);
    high = high_constant->Number(0);
  }
  const bool is_finite = std::abs(low) < kLargest && std::abs(high) < kLargest;
  if (has_low && has_high && is_finite && low <= high) {
    return node.Define(0, node.Call({OpKind::kClip, {{"min", low}, {"max", high}}}, {x}));
  }
  if (has_low) {
    x = Apply(node, OpKind::kMaximum, x, old ? Number(node, low, x) : node.Operand(1));
  }
  if (has_high) {
    x = Apply(node, OpKind::kMinimum, x, old ? Number(node, high, x) : node.Operand(2));
  }
  DefineAs(node, 0, x);
}

}  // namespace isomer
