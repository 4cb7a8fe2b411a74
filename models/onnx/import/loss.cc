// Losses over classes, which are dim 1 of the scores.
#include <utility>

#include "models/onnx/import/formulas.h"
#include "models/onnx/import/operators.h"

namespace isomer {
namespace {

// Labels [n, d..] that are ignored contribute nothing; the mean is over the weights of the rest.
struct LossOptions {
  std::string reduction;
  bool has_ignored = false;
  int64_t ignored = 0;
};

LossOptions ReadOptions(NodeImporter& node) {
  LossOptions options;
  options.reduction = node.attributes.String("reduction", "mean");
  options.has_ignored = node.attributes.Has("ignore_index");
  options.ignored = node.attributes.Int("ignore_index", 0);
  node.Expect(
      options.reduction == "mean" || options.reduction == "sum" || options.reduction == "none",
      "reduction ", QuotedName(options.reduction), " is not known");
  return options;
}

// - sum_c weight[c] [label = c] log_probability[n, c, d..], reduced.
TensorRef NegativeLogLikelihood(NodeImporter& node, const LossOptions& options,
                                TensorRef log_probability, TensorRef labels) {
  if (!node.ok()) return {};
  const Sizes sizes = node.Sizes(log_probability);
  if (!node.Expect(sizes.size() >= 2, "input 0 has rank ", sizes.size())) return {};
  const int64_t classes = sizes[1];
  TensorRef hot =
      node.Call({OpKind::kOneHot, {{"depth", classes}, {"axis", int64_t{1}}}}, {labels}, "/hot");
  hot = Cast(node, hot, node.Type(log_probability));
  const bool ignores_class =
      options.has_ignored && options.ignored >= 0 && options.ignored < classes;
  if (node.HasInput(2) || ignores_class) {
    Sizes per_class(sizes.size(), 1);
    per_class[1] = classes;
    if (node.HasInput(2)) {
      hot = Apply(node, OpKind::kMul, hot, Reshaped(node, node.Operand(2), per_class));
    }
    if (ignores_class) {
      if (!FitsLiteral(node, per_class)) return {};
      std::vector<float> kept(classes, 1);
      kept[options.ignored] = 0;
      const TensorRef mask = FloatLiteral(node, per_class, std::move(kept));
      hot = Apply(node, OpKind::kMul, hot, Cast(node, mask, node.Type(log_probability)));
    }
  }
  const TensorRef picked = Apply(node, OpKind::kMul, hot, log_probability);
  const int rank = static_cast<int>(sizes.size());
  if (options.reduction == "none") {
    return Scaled(node, Reduced(node, OpKind::kReduceSum, picked, {1}, false), -1);
  }
  const TensorRef sum =
      Scaled(node, Reduced(node, OpKind::kReduceSum, picked, AllAxes(rank), false), -1);
  if (options.reduction == "sum") return sum;
  const bool is_plain = !node.HasInput(2) && !options.has_ignored;
  if (is_plain) {
    const double count = static_cast<double>(NumElementsOf(sizes) / classes);
    return Scaled(node, sum, 1 / count);
  }
  return Apply(node, OpKind::kDiv, sum,
               Reduced(node, OpKind::kReduceSum, hot, AllAxes(rank), false));
}

}  // namespace

void ImportNegativeLogLikelihoodLoss(NodeImporter& node) {
  const TensorRef x = node.Operand(0), labels = node.Operand(1);
  DefineAs(node, 0, NegativeLogLikelihood(node, ReadOptions(node), x, labels));
}

// The mean over a batch of rows is CrossEntropy.
void ImportSoftmaxCrossEntropyLoss(NodeImporter& node) {
  const TensorRef scores = node.Operand(0), labels = node.Operand(1);
  const LossOptions options = ReadOptions(node);
  if (!node.ok()) return;
  const bool is_plain = options.reduction == "mean" && !options.has_ignored && !node.HasInput(2);
  const Operator log_softmax = {OpKind::kLogSoftmax, {{"axis", int64_t{1}}}};
  if (is_plain && node.Rank(scores) == 2) {
    node.Define(0, node.Call(OpKind::kCrossEntropy, {scores, labels}));
    if (IsWanted(node, 1)) DefineAs(node, 1, node.Call(log_softmax, {scores}, "/log_softmax"));
    return;
  }
  const TensorRef log_probability = node.Call(log_softmax, {scores}, "/log_softmax");
  DefineAs(node, 0, NegativeLogLikelihood(node, options, log_probability, labels));
  DefineAs(node, 1, log_probability);
}

}  // namespace isomer
