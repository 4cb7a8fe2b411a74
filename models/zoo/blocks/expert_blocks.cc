#include "models/zoo/blocks/expert_blocks.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "models/zoo/blocks/transformer_blocks.h"

namespace isomer {

TensorRef ExpertLayers::ExpertProduct(TensorRef x, int64_t outputs, const std::string& name) {
  const TensorRef weight = b_.Weight(name + ".weight", {sizes_.experts, b_.Size(x, -1), outputs});
  return b_.Call(OpKind::kMatMul, {x, weight}, name);
}

TensorRef ExpertLayers::Experts(TensorRef x, const std::string& name) {
  const int64_t hidden = b_.Size(x, -1);
  TensorRef y;
  if (sizes_.gated) {
    const TensorRef gate = b_.Call(
        OpKind::kSwish, {ExpertProduct(x, sizes_.intermediate, name + "/gate")}, name + "/swish");
    y = b_.Call(OpKind::kMul, {gate, ExpertProduct(x, sizes_.intermediate, name + "/up")},
                name + "/gated");
  } else {
    y = b_.Relu(ExpertProduct(x, sizes_.intermediate, name + "/up"), name);
  }
  return ExpertProduct(y, hidden, name + "/down");
}

TensorRef ExpertLayers::Layer(TensorRef x, const std::string& name) {
  const int64_t groups = b_.Size(x, 0), tokens = b_.Size(x, 1), hidden = b_.Size(x, 2);
  const int64_t experts = sizes_.experts, share = 100 * experts;
  const int64_t capacity = (2 * tokens * sizes_.capacity_percent + share - 1) / share;
  if (auxiliary_.empty()) seed_ = b_.Input("gating_seed", {}, DataType::kInt64);
  // Layers that choose nothing at random are the same operators.
  const int64_t salt = sizes_.random ? static_cast<int64_t>(auxiliary_.size()) : 0;
  const TensorRef gates = b_.Call({OpKind::kSoftmax, {{"axis", int64_t{-1}}}},
                                  {b_.Product(x, experts, name + "/gate")}, name + "/gates");
  const std::vector<TensorRef> gating =
      b_.CallAll({OpKind::kTop2Gating,
                  {{"capacity", capacity}, {"random", int64_t{sizes_.random}}, {"salt", salt}}},
                 {gates, seed_}, 2, name + "/gating");
  auxiliary_.push_back(gating[1]);
  // 1 where a token goes: weights are never negative.
  const TensorRef mask = b_.Call(OpKind::kSign, {gating[0]}, name + "/dispatch_mask");
  TensorRef y = b_.Einsum("GSEC,GSM->EGCM", {mask, x}, name + "/dispatch");
  y = b_.Reshape(y, {experts, groups * capacity, hidden}, name + "/dispatched");
  y = Experts(y, name + "/experts");
  y = b_.Reshape(y, {experts, groups, capacity, hidden}, name + "/expert_outputs");
  return b_.Einsum("GSEC,EGCM->GSM", {gating[0], y}, name + "/combine");
}

TensorRef ExpertLayers::DroplessLayer(TensorRef x, const std::string& name) {
  constexpr int64_t kChosen = 2;
  const int64_t groups = b_.Size(x, 0), tokens = b_.Size(x, 1), hidden = b_.Size(x, 2);
  const Operator softmax(OpKind::kSoftmax, {{"axis", int64_t{-1}}});
  const TensorRef gates =
      b_.Call(softmax, {b_.Product(x, sizes_.experts, name + "/gate")}, name + "/gates");
  const std::vector<TensorRef> chosen =
      b_.CallAll({OpKind::kTopK, {{"k", kChosen}, {"axis", int64_t{2}}, {"largest", int64_t{1}}}},
                 {gates}, 2, name + "/chosen");
  const auto sum = [&](TensorRef of, int64_t keepdims, const std::string& as) {
    return b_.Call(
        {OpKind::kReduceSum, {{"axes", std::vector<int64_t>{2}}, {"keepdims", keepdims}}}, {of},
        as);
  };
  TensorRef weights = b_.Call(OpKind::kDiv, {chosen[0], sum(chosen[0], 1, name + "/chosen/sum")},
                              name + "/weights");
  weights = b_.Reshape(weights, {groups, tokens, kChosen, 1}, name + "/weights/columns");
  TensorRef rows = b_.Reshape(x, {groups, tokens, 1, hidden}, name + "/row");
  rows =
      b_.Call({OpKind::kExpand, {{"shape", std::vector<int64_t>{groups, tokens, kChosen, hidden}}}},
              {rows}, name + "/rows");
  const auto product = [&](TensorRef of, int64_t outputs, const std::string& as) {
    const TensorRef weight = b_.Weight(as + ".weight", {sizes_.experts, b_.Size(of, -1), outputs});
    return b_.Call(OpKind::kGatherMatMul, {of, weight, chosen[1]}, as);
  };
  const TensorRef gate =
      b_.Call(OpKind::kSwish, {product(rows, sizes_.intermediate, name + "/experts/gate")},
              name + "/swish");
  TensorRef y =
      b_.Call(OpKind::kMul, {gate, product(rows, sizes_.intermediate, name + "/experts/up")},
              name + "/gated");
  y = product(y, hidden, name + "/experts/down");
  return sum(b_.Call(OpKind::kMul, {y, weights}, name + "/weighted"), 0, name);
}

void ExpertLayers::AddLoss(TensorRef logits, int64_t batch, double weight) {
  const int64_t rows = b_.Size(logits, 0);
  const TensorRef labels =
      b_.Input("labels", {batch, std::max<int64_t>(rows / batch, 1)}, DataType::kInt64);
  const TensorRef main = b_.Call(OpKind::kCrossEntropy,
                                 {logits, b_.Reshape(labels, {rows}, "labels/rows")}, "main_loss");
  TensorRef sum = auxiliary_[0];
  for (size_t i = 1; i < auxiliary_.size(); ++i) {
    sum = b_.Add(sum, auxiliary_[i], "auxiliary/sum");
  }
  const TensorRef mean =
      b_.Call({OpKind::kReduceMean, {{"axes", std::vector<int64_t>{0}}, {"keepdims", int64_t{0}}}},
              {sum}, "auxiliary/mean");
  const TensorRef scaled = b_.Call({OpKind::kScale, {{"factor", weight}}}, {mean}, "auxiliary");
  b_.Loss(b_.Add(main, scaled, "loss"));
}

namespace {

// Of gpt-oss: gates up to 7 and ups within 7 of 0; gate * sigmoid(1.702 gate) * (up + 1).
TensorRef ClampedGate(ModelBuilder& b, TensorRef gate, TensorRef up, const std::string& name) {
  constexpr double kLimit = 7, kSlope = 1.702, kNone = -1e30;
  const auto clip = [&](TensorRef of, double least, const std::string& as) {
    return b.Call({OpKind::kClip, {{"min", least}, {"max", kLimit}}}, {of}, as);
  };
  gate = clip(gate, kNone, name + "/gate/clipped");
  up = clip(up, -kLimit, name + "/up/clipped");
  const TensorRef steep =
      b.Call({OpKind::kScale, {{"factor", kSlope}}}, {gate}, name + "/gate/scaled");
  const TensorRef open = b.Call(OpKind::kSigmoid, {steep}, name + "/sigmoid");
  const TensorRef glu = b.Call(OpKind::kMul, {gate, open}, name + "/glu");
  return b.Add(b.Call(OpKind::kMul, {up, glu}, name + "/gated/up"), glu, name + "/gated");
}

// rows [batch, experts, capacity, hidden] to the same.
TensorRef ExpertsOfRows(ModelBuilder& b, TensorRef rows, const RoutedSizes& sizes,
                        const std::string& name) {
  const auto product = [&](TensorRef of, int64_t outputs, const std::string& as) {
    const TensorRef weight = b.Weight(as + ".weight", {sizes.experts, b.Size(of, -1), outputs});
    const TensorRef y = b.Call(OpKind::kMatMul, {of, weight}, as);
    if (!sizes.biases) return y;
    return b.Add(y, b.Weight(as + ".bias", {sizes.experts, 1, outputs}), as + "/biased");
  };
  const TensorRef gate = product(rows, sizes.intermediate, name + "/gate");
  const TensorRef up = product(rows, sizes.intermediate, name + "/up");
  const TensorRef gated =
      sizes.gate == RoutedSizes::Gate::kClamped
          ? ClampedGate(b, gate, up, name)
          : b.Call(OpKind::kMul, {b.Call(OpKind::kSwish, {gate}, name + "/swish"), up},
                   name + "/gated");
  return product(gated, b.Size(rows, -1), name + "/down");
}

}  // namespace

TensorRef RoutedExperts(ModelBuilder& b, TensorRef x, const RoutedSizes& sizes,
                        const std::string& name) {
  const int64_t groups = b.Size(x, 0), tokens = b.Size(x, 1), hidden = b.Size(x, 2);
  if (sizes.chosen > sizes.experts) {
    b.Fail(absl::InvalidArgumentError(
        absl::StrCat("a token cannot choose ", sizes.chosen, " of ", sizes.experts, " experts")));
    return x;
  }
  const int64_t share = 100 * sizes.experts;
  const int64_t capacity =
      std::min((sizes.chosen * tokens * sizes.capacity_percent + share - 1) / share, tokens);
  const TensorRef logits = Projection(b, x, sizes.experts, sizes.biases, name + "/router");
  const Operator of_logits = sizes.scores == RoutedSizes::Scores::kSoftmax
                                 ? Operator(OpKind::kSoftmax, {{"axis", int64_t{-1}}})
                                 : Operator(OpKind::kSigmoid);
  std::vector<TensorRef> scores = {b.Call(of_logits, {logits}, name + "/scores")};
  if (sizes.biased_choice) scores.push_back(b.Weight(name + "/choice.bias", {sizes.experts}));
  const Operator routing(OpKind::kTopKRouting, {{"k", sizes.chosen}, {"capacity", capacity}});
  const std::vector<TensorRef> routed = b.CallAll(routing, scores, 3, name + "/routing");
  TensorRef weights = routed[0];
  if (sizes.scale != 1) {
    weights = b.Call({OpKind::kScale, {{"factor", sizes.scale}}}, {weights}, name + "/weights");
  }
  TensorRef y = b.Call(OpKind::kGatherRows, {x, routed[2]}, name + "/dispatch");
  y = ExpertsOfRows(b, y, sizes, name + "/experts");
  y = b.Reshape(y, {groups, sizes.experts * capacity, hidden}, name + "/expert_outputs");
  y = b.Call(OpKind::kGatherSum, {y, routed[1], weights}, name + "/combine");
  if (sizes.shared == 0) return y;
  const TensorRef shared =
      GatedFeedForward(b, x, sizes.shared * sizes.intermediate, name + "/shared");
  return b.Add(y, shared, name + "/with_shared");
}

}  // namespace isomer
