// Normalisation and reduction over whole dims.
#include "models/onnx/operators.h"

namespace isomer {

// Before opset 13 all dims from `axis` on were normalised together: the same for the last one.
void ImportSoftmax(NodeImporter& node) {
  const TensorRef x = node.Operand(0);
  const bool is_old = node.opset() < 13;
  const int rank = node.Rank(x);
  const int axis = node.Axis(node.attributes.Int("axis", is_old ? 1 : -1), rank);
  node.Expect(!is_old || axis == rank - 1, "axis ", axis, " of rank ", rank, " at opset ",
              node.opset(), " normalises several dims together, which is not read");
  // One spelling, so that equal nodes are equal.
  const int64_t from_back = axis == rank - 1 ? -1 : axis;
  node.Define(0, node.Call({OpKind::kSoftmax, {{"axis", from_back}}}, {x}));
}

void ImportLayerNorm(NodeImporter& node) {
  const TensorRef x = node.Operand(0), weight = node.Operand(1);
  if (!node.Expect(node.HasInput(2), "it has no bias, which is not read")) return;
  const TensorRef bias = node.Operand(2);
  const int rank = node.Rank(x);
  const int axis = node.Axis(node.attributes.Int("axis", -1), rank);
  node.Expect(axis == rank - 1, "axis ", axis, " of rank ", rank, "; only the last is read");
  node.Expect(node.attributes.Int("stash_type", 1) == 1, "stash_type is not 1 (FLOAT)");
  const double epsilon = node.attributes.Float("epsilon", 1e-5f);
  node.Define(0, node.Call({OpKind::kLayerNorm, {{"epsilon", epsilon}}}, {x, weight, bias}));
}

void ImportBatchNorm(NodeImporter& node) {
  std::vector<TensorRef> operands;
  for (int i = 0; i < 5; ++i) operands.push_back(node.Operand(i));
  node.attributes.Ignore("momentum");
  node.Expect(node.attributes.Int("training_mode", 0) == 0,
              "training_mode is 1, statistics of the batch; export the model in eval mode");
  const double epsilon = node.attributes.Float("epsilon", 1e-5f);
  node.Define(0, node.Call({OpKind::kBatchNorm, {{"epsilon", epsilon}}}, std::move(operands)));
}

// Axes are an operand of ReduceSum from opset 13 on, and an attribute otherwise.
void ImportReduction(NodeImporter& node) {
  const TensorRef x = node.Operand(0);
  const bool is_sum = node.op() == "ReduceSum";
  std::vector<int64_t> axes =
      is_sum && node.opset() >= 13 ? node.ConstantInts(1) : node.attributes.Ints("axes", {});
  const bool empty_is_none = node.attributes.Int("noop_with_empty_axes", 0) == 1;
  if (axes.empty() && empty_is_none) return node.Define(0, x);
  if (axes.empty()) {
    for (int i = 0; i < node.Rank(x); ++i) axes.push_back(i);
  }
  const int64_t keepdims = node.attributes.Int("keepdims", 1);
  node.Define(0, node.Call({is_sum ? OpKind::kReduceSum : OpKind::kReduceMean,
                            {{"axes", axes}, {"keepdims", keepdims}}},
                           {x}));
}

// The mean over all dims but batch and channel, which stay with size 1.
void ImportGlobalAveragePool(NodeImporter& node) {
  const TensorRef x = node.Operand(0);
  std::vector<int64_t> axes;
  for (int i = 2; i < node.Rank(x); ++i) axes.push_back(i);
  if (!node.Expect(!axes.empty(), "input 0 has rank ", node.Rank(x), ", and nothing to average")) {
    return;
  }
  node.Define(0, node.Call({OpKind::kReduceMean, {{"axes", axes}}}, {x}));
}

}  // namespace isomer
