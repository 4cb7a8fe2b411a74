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

namespace {

// Of `takers`, experts or groups, each of which takes as many rows as others: that of even shares
// of `rows` choices, in percent, and no more than there are tokens.
int64_t CapacityOf(int64_t rows, int64_t takers, int64_t percent, int64_t tokens) {
  const int64_t share = 100 * takers;
  return std::min((rows * percent + share - 1) / share, tokens);
}

TensorRef ScaledWeights(ModelBuilder& b, TensorRef weights, const RoutedSizes& sizes,
                        const std::string& name) {
  if (sizes.scale == 1) return weights;
  return b.Call({OpKind::kScale, {{"factor", sizes.scale}}}, {weights}, name + "/weights");
}

TensorRef ScoresOf(ModelBuilder& b, TensorRef x, const RoutedSizes& sizes,
                   const std::string& name) {
  const TensorRef logits = Projection(b, x, sizes.experts, sizes.biases, name + "/router");
  const Operator of_logits = sizes.scores == RoutedSizes::Scores::kSoftmax
                                 ? Operator(OpKind::kSoftmax, {{"axis", int64_t{-1}}})
                                 : Operator(OpKind::kSigmoid);
  return b.Call(of_logits, {logits}, name + "/scores");
}

// The sum of the experts.
TensorRef RoutedAtOnce(ModelBuilder& b, TensorRef x, const RoutedSizes& sizes,
                       const std::string& name) {
  const int64_t batch = b.Size(x, 0), tokens = b.Size(x, 1), hidden = b.Size(x, 2);
  const int64_t capacity =
      CapacityOf(sizes.chosen * tokens, sizes.experts, sizes.capacity_percent, tokens);
  std::vector<TensorRef> scores = {ScoresOf(b, x, sizes, name)};
  if (sizes.biased_choice) scores.push_back(b.Weight(name + "/choice.bias", {sizes.experts}));
  const Operator routing(OpKind::kTopKRouting, {{"k", sizes.chosen}, {"capacity", capacity}});
  const std::vector<TensorRef> routed = b.CallAll(routing, scores, 3, name + "/routing");
  const TensorRef weights = ScaledWeights(b, routed[0], sizes, name);
  TensorRef y = b.Call(OpKind::kGatherRows, {x, routed[2]}, name + "/dispatch");
  y = ExpertsOfRows(b, y, sizes, name + "/experts");
  y = b.Reshape(y, {batch, sizes.experts * capacity, hidden}, name + "/expert_outputs");
  return b.Call(OpKind::kGatherSum, {y, routed[1], weights}, name + "/combine");
}

// The same, of experts in groups.
TensorRef RoutedByGroups(ModelBuilder& b, TensorRef x, const RoutedSizes& sizes,
                         const std::string& name) {
  const int64_t batch = b.Size(x, 0), tokens = b.Size(x, 1), hidden = b.Size(x, 2);
  const int64_t groups = sizes.groups, of_group = sizes.experts / groups;
  const int64_t chosen = sizes.chosen / sizes.chosen_groups;  // of a group
  const int64_t rows =
      CapacityOf(sizes.chosen_groups * tokens, groups, sizes.capacity_percent, tokens);
  const int64_t capacity =
      CapacityOf(sizes.chosen * tokens, sizes.experts, sizes.capacity_percent, rows);
  const auto routing = [&](TensorRef scores, int64_t k, int64_t slots, const std::string& as) {
    return b.CallAll({OpKind::kTopKRouting, {{"k", k}, {"capacity", slots}}}, {scores}, 3, as);
  };
  // Which groups a token goes to, and with which weight.
  const TensorRef scores = b.Reshape(ScoresOf(b, x, sizes, name), {batch, tokens, groups, of_group},
                                     name + "/scores/groups");
  const TensorRef best =
      b.CallAll({OpKind::kTopK, {{"k", chosen}, {"axis", int64_t{3}}, {"largest", int64_t{1}}}},
                {scores}, 2, name + "/groups/best")[0];
  const TensorRef of_groups =
      b.Call({OpKind::kReduceSum, {{"axes", std::vector<int64_t>{3}}, {"keepdims", int64_t{0}}}},
             {best}, name + "/groups/scores");
  const std::vector<TensorRef> outer =
      routing(of_groups, sizes.chosen_groups, rows, name + "/groups/routing");
  // The group's tokens, and their scores of its experts.
  const TensorRef arrived =
      b.Call(OpKind::kGatherRows, {x, outer[2]}, name + "/groups/dispatch");  // [b, g, rows, h]
  const TensorRef by_group = b.Transpose(scores, {0, 2, 1, 3}, name + "/groups/scores_of_experts");
  const TensorRef inner_scores =
      b.Call(OpKind::kGatherRows, {by_group, outer[2]}, name + "/groups/dispatched_scores");
  const std::vector<TensorRef> inner = routing(inner_scores, chosen, capacity, name + "/routing");
  TensorRef y = b.Call(OpKind::kGatherRows, {arrived, inner[2]}, name + "/dispatch");
  y = b.Reshape(y, {batch, sizes.experts, capacity, hidden}, name + "/dispatched");
  y = ExpertsOfRows(b, y, sizes, name + "/experts");
  y = b.Reshape(y, {batch, groups, of_group * capacity, hidden}, name + "/expert_outputs");
  y = b.Call(OpKind::kGatherSum, {y, inner[1], inner[0]}, name + "/combine");
  y = b.Reshape(y, {batch, groups * rows, hidden}, name + "/group_outputs");
  const TensorRef weights = ScaledWeights(b, outer[0], sizes, name);
  return b.Call(OpKind::kGatherSum, {y, outer[1], weights}, name + "/groups/combine");
}

absl::Status CheckChoices(const RoutedSizes& sizes) {
  if (sizes.chosen > sizes.experts) {
    return absl::InvalidArgumentError(
        absl::StrCat("a token cannot choose ", sizes.chosen, " of ", sizes.experts, " experts"));
  }
  if (sizes.groups == 1 && sizes.chosen_groups == 1) return absl::OkStatus();
  if (sizes.experts % sizes.groups != 0) {
    return absl::InvalidArgumentError(absl::StrCat(sizes.experts, " experts in ", sizes.groups,
                                                   " groups are not as many in each"));
  }
  if (sizes.chosen_groups > sizes.groups) {
    return absl::InvalidArgumentError(absl::StrCat("a token cannot choose ", sizes.chosen_groups,
                                                   " of ", sizes.groups, " groups"));
  }
  if (sizes.chosen % sizes.chosen_groups != 0 ||
      sizes.chosen / sizes.chosen_groups > sizes.experts / sizes.groups) {
    return absl::InvalidArgumentError(
        absl::StrCat("a token cannot choose ", sizes.chosen, " experts, as many in each of ",
                     sizes.chosen_groups, " groups of ", sizes.experts / sizes.groups));
  }
  return absl::OkStatus();
}

}  // namespace

TensorRef RoutedExperts(ModelBuilder& b, TensorRef x, const RoutedSizes& sizes,
                        const std::string& name) {
  if (const absl::Status checked = CheckChoices(sizes); !checked.ok()) {
    b.Fail(checked);
    return x;
  }
  const TensorRef y =
      sizes.groups == 1 ? RoutedAtOnce(b, x, sizes, name) : RoutedByGroups(b, x, sizes, name);
  if (sizes.shared == 0) return y;
  const TensorRef shared =
      GatedFeedForward(b, x, sizes.shared * sizes.intermediate, name + "/shared");
  return b.Add(y, shared, name + "/with_shared");
}

}  // namespace isomer
