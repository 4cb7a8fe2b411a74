// Normalisation.
#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "models/onnx/import/formulas.h"
#include "models/onnx/import/operators.h"

namespace isomer {
namespace {

// x minus its mean over `axes`, divided by the square root of its variance plus epsilon.
TensorRef Standardized(NodeImporter& node, TensorRef x, const Sizes& axes, double epsilon) {
  const TensorRef centered =
      Apply(node, OpKind::kSub, x, Reduced(node, OpKind::kReduceMean, x, axes));
  const TensorRef squares = Apply(node, OpKind::kMul, centered, centered);
  const TensorRef variance = Reduced(node, OpKind::kReduceMean, squares, axes);
  const TensorRef deviation =
      Apply(node, OpKind::kSqrt, Apply(node, OpKind::kAdd, variance, epsilon));
  return Apply(node, OpKind::kDiv, centered, deviation);
}

// Before opset 13 the softmaxes took the dims from `axis` on as one.
TensorRef OverOneAxis(NodeImporter& node, OpKind kind, TensorRef x) {
  const bool is_old = node.opset() < 13;
  const int rank = node.Rank(x);
  const int axis = node.Axis(node.attributes.Int("axis", is_old ? 1 : -1), rank);
  if (!node.ok()) return {};
  const Sizes sizes = node.Sizes(x);
  if (is_old && axis < rank - 1) {
    const Sizes outer(sizes.begin(), sizes.begin() + axis),
        inner(sizes.begin() + axis, sizes.end());
    const TensorRef rows = Reshaped(node, x, {NumElementsOf(outer), NumElementsOf(inner)});
    const TensorRef result = node.Call({kind, {{"axis", int64_t{-1}}}}, {rows}, "/rows");
    return Reshaped(node, result, sizes);
  }
  // One spelling, so that equal nodes are equal.
  return node.Call({kind, {{"axis", int64_t{axis == rank - 1 ? -1 : axis}}}}, {x}, "/softmax");
}

// What evaluation normalises by, where scale and statistics are leaves. Those of a scale that two
// calls share are the first one's.
void AddBatchStatistics(NodeImporter& node, const std::vector<TensorRef>& operands,
                        double momentum) {
  if (!node.ok() || !(momentum >= 0 && momentum <= 1)) return;
  Model& model = node.state().model;
  const auto leaf = [&](int i) -> const Node& { return model.graph.node(operands[i].node); };
  const bool are_leaves = leaf(1).op.kind() == OpKind::kWeight &&
                          leaf(3).op.kind() == OpKind::kConstant &&
                          leaf(4).op.kind() == OpKind::kConstant && leaf(3).name != leaf(4).name;
  const bool is_known =
      std::any_of(model.statistics.begin(), model.statistics.end(),
                  [&](const BatchStatistics& known) { return known.scale == leaf(1).name; });
  if (!are_leaves || is_known) return;
  model.statistics.push_back({leaf(1).name, leaf(3).name, leaf(4).name, momentum});
}

}  // namespace

void ImportSoftmax(NodeImporter& node) {
  const OpKind kind = node.op() == "LogSoftmax" ? OpKind::kLogSoftmax : OpKind::kSoftmax;
  DefineAs(node, 0, OverOneAxis(node, kind, node.Operand(0)));
}

// 1 at the first largest element along the axis, else 0.
void ImportHardmax(NodeImporter& node) {
  const TensorRef x = node.Operand(0);
  const bool is_old = node.opset() < 13;
  const int rank = node.Rank(x);
  int axis = node.Axis(node.attributes.Int("axis", is_old ? 1 : -1), rank);
  if (!node.ok()) return;
  const Sizes sizes = node.Sizes(x);
  TensorRef rows = x;
  if (is_old) {
    const Sizes outer(sizes.begin(), sizes.begin() + axis),
        inner(sizes.begin() + axis, sizes.end());
    rows = Reshaped(node, x, {NumElementsOf(outer), NumElementsOf(inner)});
    axis = 1;
  }
  const int64_t depth = node.Sizes(rows)[axis];
  const TensorRef first = node.Call(
      {OpKind::kArgMax, {{"axis", int64_t{axis}}, {"keepdims", int64_t{0}}}}, {rows}, "/argmax");
  const TensorRef hot =
      node.Call({OpKind::kOneHot, {{"depth", depth}, {"axis", int64_t{axis}}}}, {first}, "/hot");
  DefineAs(node, 0, Cast(node, Reshaped(node, hot, sizes), node.Type(x)));
}

// Over the dims from `axis` on, which the weight has too; the bias may be left out.
void ImportLayerNorm(NodeImporter& node) {
  const TensorRef x = node.Operand(0), weight = node.Operand(1);
  const int rank = node.Rank(x);
  const int axis = node.Axis(node.attributes.Int("axis", -1), rank);
  const double epsilon = node.attributes.Float("epsilon", 1e-5f);
  node.attributes.Ignore("stash_type");  // what the mean is computed in: here always the widest
  if (!node.ok()) return;
  const TensorRef bias = node.HasInput(2) ? node.Operand(2) : Number(node, 0, x);
  const bool wants_statistics = IsWanted(node, 1) || IsWanted(node, 2);
  const Sizes last = {node.Sizes(x).back()};
  if (axis == rank - 1 && node.Sizes(weight) == last && !wants_statistics) {
    const TensorRef shift = node.HasInput(2) ? bias : Expanded(node, bias, last);
    const Operator norm = {OpKind::kLayerNorm, {{"epsilon", epsilon}}};
    return node.Define(0, node.Call(norm, {x, weight, shift}));
  }
  const Sizes axes = AllAxes(rank, axis);
  const TensorRef mean = Reduced(node, OpKind::kReduceMean, x, axes);
  const TensorRef centered = Apply(node, OpKind::kSub, x, mean);
  const TensorRef squares = Apply(node, OpKind::kMul, centered, centered);
  const TensorRef variance = Reduced(node, OpKind::kReduceMean, squares, axes);
  const TensorRef deviation =
      Apply(node, OpKind::kSqrt, Apply(node, OpKind::kAdd, variance, epsilon));
  const TensorRef inverse = Apply(node, OpKind::kReciprocal, deviation);
  const TensorRef scaled =
      Apply(node, OpKind::kMul, Apply(node, OpKind::kMul, centered, inverse), weight);
  DefineAs(node, 0, node.HasInput(2) ? Apply(node, OpKind::kAdd, scaled, bias) : scaled);
  DefineAs(node, 1, mean);
  DefineAs(node, 2, inverse);
}

void ImportRmsNorm(NodeImporter& node) {
  const TensorRef x = node.Operand(0), scale = node.Operand(1);
  const int rank = node.Rank(x);
  const int axis = node.Axis(node.attributes.Int("axis", -1), rank);
  const double epsilon = node.attributes.Float("epsilon", 1e-5f);
  node.attributes.Ignore("stash_type");
  if (!node.ok()) return;
  if (axis == rank - 1 && node.Sizes(scale) == Sizes{node.Sizes(x).back()}) {
    return node.Define(0, node.Call({OpKind::kRmsNorm, {{"epsilon", epsilon}}}, {x, scale}));
  }
  const TensorRef mean =
      Reduced(node, OpKind::kReduceMean, Apply(node, OpKind::kMul, x, x), AllAxes(rank, axis));
  const TensorRef root = Apply(node, OpKind::kSqrt, Apply(node, OpKind::kAdd, mean, epsilon));
  DefineAs(node, 0, Apply(node, OpKind::kMul, Apply(node, OpKind::kDiv, x, root), scale));
}

// With statistics of the batch also the running ones after it: old * momentum + new * (1 -
// momentum). Before opset 14 training is where there are more outputs than one.
void ImportBatchNorm(NodeImporter& node) {
  std::vector<TensorRef> operands;
  const double epsilon = node.attributes.Float("epsilon", 1e-5f);
  const double momentum = node.attributes.Float("momentum", 0.9f);
  node.attributes.Ignore("spatial");
  const bool is_training = node.opset() >= 14
                               ? node.attributes.Int("training_mode", 0) == 1
                               : IsWanted(node, 1) || IsWanted(node, 2) || node.num_outputs() > 1;
  for (int i = 0; i < 5; ++i) operands.push_back(node.Operand(i));
  if (!is_training) {
    const Operator norm = {OpKind::kBatchNorm, {{"epsilon", epsilon}}};
    return node.Define(0, node.Call(norm, std::move(operands)));
  }
  const Operator norm = {OpKind::kBatchNormTraining, {{"epsilon", epsilon}}};
  const TensorRef y = node.Call(norm, {operands[0], operands[1], operands[2]});
  AddBatchStatistics(node, operands, momentum);
  node.Define(0, y);
  for (int i : {1, 2}) {
    if (!IsWanted(node, i)) continue;
    const TensorRef seen = Cast(node, {y.node, i}, node.Type(operands[2 + i]));
    const TensorRef old_part = Scaled(node, operands[2 + i], momentum);
    DefineAs(node, i, Apply(node, OpKind::kAdd, old_part, Scaled(node, seen, 1 - momentum)));
  }
  for (int i : {3, 4}) {  // saved_mean and saved_var, for the gradient
    if (IsWanted(node, i)) node.Define(i, Cast(node, {y.node, i - 2}, node.Type(operands[0])));
  }
}

// Each image and channel by itself: groups of one channel.
void ImportInstanceNorm(NodeImporter& node) {
  const TensorRef x = node.Operand(0), scale = node.Operand(1), bias = node.Operand(2);
  const double epsilon = node.attributes.Float("epsilon", 1e-5f);
  if (!node.ok() || !node.Expect(node.Rank(x) >= 3, "input 0 has rank ", node.Rank(x))) return;
  const Operator norm = {OpKind::kGroupNorm, {{"groups", node.Sizes(x)[1]}, {"epsilon", epsilon}}};
  node.Define(0, node.Call(norm, {x, scale, bias}));
}

// Weights are per group before opset 21, and per channel from then on.
void ImportGroupNorm(NodeImporter& node) {
  const TensorRef x = node.Operand(0), scale = node.Operand(1), bias = node.Operand(2);
  const double epsilon = node.attributes.Float("epsilon", 1e-5f);
  const int64_t groups = node.attributes.Int("num_groups", 0);
  node.attributes.Ignore("stash_type");
  if (!node.ok() || !node.Expect(node.Rank(x) >= 3, "input 0 has rank ", node.Rank(x))) return;
  const int64_t channels = node.Sizes(x)[1];
  if (!node.Expect(groups >= 1 && channels % groups == 0, channels, " channels do not divide into ",
                   groups, " groups")) {
    return;
  }
  auto per_channel = [&](TensorRef vector) {
    if (!node.ok() || node.Sizes(vector) != Sizes{groups}) return vector;
    const TensorRef wide =
        Expanded(node, Reshaped(node, vector, {groups, 1}), {groups, channels / groups});
    return Reshaped(node, wide, {channels});
  };
  const Operator norm = {OpKind::kGroupNorm, {{"groups", groups}, {"epsilon", epsilon}}};
  node.Define(0, node.Call(norm, {x, per_channel(scale), per_channel(bias)}));
}

// x / (bias + alpha / size * sum of squares of `size` neighbouring channels)^beta
void ImportLrn(NodeImporter& node) {
  const TensorRef x = node.Operand(0);
  const double alpha = node.attributes.Float("alpha", 1e-4f);
  const double beta = node.attributes.Float("beta", 0.75), bias = node.attributes.Float("bias", 1);
  const int64_t size = node.attributes.Int("size", 1);
  const int rank = node.Rank(x);
  if (!node.Expect(rank >= 2, "input 0 has rank ", rank) ||
      !node.Expect(size >= 1, "size ", size)) {
    return;
  }
  const int64_t channels = node.Sizes(x)[1];
  // Which channels are neighbours, as a matrix; channels become the last dim of rows.
  if (!FitsLiteral(node, {channels, channels})) return;
  std::vector<float> neighbours(channels * channels, 0);
  for (int64_t c = 0; c < channels; ++c) {
    for (int64_t k = 0; k < channels; ++k) {
      const bool near = k >= c - (size - 1) / 2 && k <= c + size / 2;
      if (near) neighbours[k * channels + c] = 1;
    }
  }
  Sizes last = AllAxes(rank), back = last;
  last.erase(last.begin() + 1);
  last.push_back(1);
  back.insert(back.begin() + 1, back.back());
  back.pop_back();
  const TensorRef squares = Transposed(node, Apply(node, OpKind::kMul, x, x), last);
  const TensorRef matrix = FloatLiteral(node, {channels, channels}, std::move(neighbours));
  const TensorRef sums = Transposed(node, Product(node, squares, matrix), back);
  const TensorRef base =
      Apply(node, OpKind::kAdd, Scaled(node, sums, alpha / static_cast<double>(size)), bias);
  DefineAs(node, 0, Apply(node, OpKind::kDiv, x, Apply(node, OpKind::kPow, base, beta)));
}

void ImportLpNormalization(NodeImporter& node) {
  const TensorRef x = node.Operand(0);
  const int64_t p = node.attributes.Int("p", 2);
  const int axis = node.Axis(node.attributes.Int("axis", -1), node.Rank(x));
  if (!node.Expect(p == 1 || p == 2, "p is ", p, ", not 1 or 2")) return;
  const TensorRef powers = p == 1 ? Apply(node, OpKind::kAbs, x) : Apply(node, OpKind::kMul, x, x);
  const TensorRef sum = Reduced(node, OpKind::kReduceSum, powers, {axis});
  const TensorRef norm = p == 1 ? sum : Apply(node, OpKind::kSqrt, sum);
  DefineAs(node, 0, Apply(node, OpKind::kDiv, x, norm));
}

// The standard's function adds 1e-9 to the deviation.
void ImportMeanVarianceNormalization(NodeImporter& node) {
  const TensorRef x = node.Operand(0);
  Sizes axes = node.attributes.Ints("axes", {0, 2, 3});
  for (int64_t& axis : axes) axis = node.Axis(axis, node.Rank(x));
  DefineAs(node, 0, Standardized(node, x, axes, 1e-18));
}

}  // namespace isomer
