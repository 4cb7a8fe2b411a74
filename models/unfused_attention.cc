#include "models/unfused_attention.h"

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "pcg/ir/operator_facts.h"
#include "pcg/support/status_macros.h"

namespace isomer {
namespace {

// As the declaration of attention has it.
constexpr double kUnseen = -1e30;

class Rewriter {
 public:
  explicit Rewriter(Model* model) : model_(*model) {}

  absl::StatusOr<int> Run() {
    const Graph old = std::move(model_.graph);
    graph_ = Graph();
    std::map<TensorRef, TensorRef> now;
    int count = 0;
    for (NodeId id : old.TopologicalOrder()) {
      const Node& node = old.node(id);
      const OpKind kind = node.op.kind();
      if (IsLeaf(kind)) {
        now[{id, 0}] = graph_.AddLeaf(kind, node.name, node.outputs[0]);
        continue;
      }
      std::vector<TensorRef> inputs;
      for (TensorRef input : node.inputs) inputs.push_back(now.at(input));
      if (IsAttention(kind)) {
        ISOMER_ASSIGN_OR_RETURN(const TensorRef output, Attention(node, inputs));
        now[{id, 0}] = output;
        ++count;
        continue;
      }
      ISOMER_ASSIGN_OR_RETURN(const NodeId added,
                              graph_.Add(node.op, std::move(inputs), std::string(node.name)));
      for (size_t o = 0; o < node.outputs.size(); ++o) {
        now[{id, static_cast<int32_t>(o)}] = {added, static_cast<int32_t>(o)};
      }
    }
    for (const Graph::NamedOutput& output : old.outputs()) {
      graph_.AddOutput(output.name, now.at(output.tensor));
    }
    model_.graph = std::move(graph_);
    return count;
  }

 private:
  absl::StatusOr<TensorRef> Call(Operator op, std::vector<TensorRef> inputs,
                                 const std::string& name) {
    ISOMER_ASSIGN_OR_RETURN(const NodeId added, graph_.Add(std::move(op), std::move(inputs), name));
    return TensorRef{added, 0};
  }

  std::vector<int64_t> SizesOf(TensorRef tensor) const { return graph_.type(tensor).Sizes(); }

  // Each head of keys or values as often as queries use it.
  absl::StatusOr<TensorRef> Repeated(TensorRef x, int64_t times, const std::string& name) {
    if (times == 1) return x;
    const std::vector<int64_t> s = SizesOf(x);
    const auto reshape = [](std::vector<int64_t> shape) {
      return Operator(OpKind::kReshape, {{"shape", std::move(shape)}});
    };
    ISOMER_ASSIGN_OR_RETURN(x, Call(reshape({s[0], s[1], 1, s[2], s[3]}), {x}, name + "/one"));
    const std::vector<int64_t> all = {s[0], s[1], times, s[2], s[3]};
    ISOMER_ASSIGN_OR_RETURN(x, Call({OpKind::kExpand, {{"shape", all}}}, {x}, name + "/repeated"));
    return Call(reshape({s[0], s[1] * times, s[2], s[3]}), {x}, name + "/heads");
  }

  // [queries, keys]: kUnseen from diagonal k on (upper), or up to it.
  absl::StatusOr<TensorRef> Mask(int64_t queries, int64_t keys, bool upper, int64_t k,
                                 const std::string& name) {
    TensorRef& mask = masks_[{queries, keys, int64_t{upper}, k}];
    if (mask.node.value >= 0) return mask;
    if (unseen_.node.value < 0) {
      std::string name = "unseen";
      while (model_.weights.count(name) > 0) name += "_";
      unseen_ = graph_.AddConstant(name, SequentialType({1, 1}));
      model_.weights[name] = std::vector<float>{static_cast<float>(kUnseen)};
    }
    ISOMER_ASSIGN_OR_RETURN(
        const TensorRef all,
        Call({OpKind::kExpand, {{"shape", std::vector<int64_t>{queries, keys}}}}, {unseen_},
             "unseen/all"));
    ISOMER_ASSIGN_OR_RETURN(
        mask, Call({OpKind::kTrilu, {{"upper", int64_t{upper}}, {"k", k}}}, {all}, name));
    return mask;
  }

  // Keys behind a query.
  absl::StatusOr<TensorRef> CausalMask(int64_t queries, int64_t keys) {
    return Mask(queries, keys, /*upper=*/true, 1 + keys - queries, "unseen/mask");
  }

  // Keys at least `window` places before a query.
  absl::StatusOr<TensorRef> FarMask(int64_t queries, int64_t keys, int64_t window) {
    return Mask(queries, keys, /*upper=*/false, keys - queries - window, "unseen/far");
  }

  // A mask [queries, keys] whose both dims get in the order of stripes
  // (pcg/operators/attention.cc).
  absl::StatusOr<TensorRef> InStripes(TensorRef mask, int64_t stripes, const std::string& name) {
    if (stripes <= 1) return mask;
    const std::vector<int64_t> sizes = SizesOf(mask);
    const std::vector<int64_t> apart = {sizes[0] / stripes, stripes, sizes[1] / stripes, stripes};
    ISOMER_ASSIGN_OR_RETURN(
        mask, Call({OpKind::kReshape, {{"shape", apart}}}, {mask}, name + "/mask/stripes"));
    ISOMER_ASSIGN_OR_RETURN(
        mask, Call({OpKind::kTranspose, {{"perm", std::vector<int64_t>{1, 0, 3, 2}}}}, {mask},
                   name + "/mask/in_stripes"));
    return Call({OpKind::kReshape, {{"shape", sizes}}}, {mask}, name + "/mask");
  }

  // The softmax of scores [batch, heads, queries, keys] and of one more score of each head, without
  // the share of that.
  absl::StatusOr<TensorRef> SharesBesideSink(TensorRef scores, TensorRef sinks,
                                             const std::string& name) {
    const std::vector<int64_t> s = SizesOf(scores);
    const auto with_last = [&](int64_t keys) {
      return std::vector<int64_t>{s[0], s[1], s[2], keys};
    };
    ISOMER_ASSIGN_OR_RETURN(
        sinks, Call({OpKind::kReshape, {{"shape", std::vector<int64_t>{1, s[1], 1, 1}}}}, {sinks},
                    name + "/sinks/heads"));
    ISOMER_ASSIGN_OR_RETURN(
        sinks, Call({OpKind::kExpand, {{"shape", with_last(1)}}}, {sinks}, name + "/sinks"));
    ISOMER_ASSIGN_OR_RETURN(scores, Call({OpKind::kConcat, {{"axis", int64_t{-1}}}},
                                         {scores, sinks}, name + "/with_sinks"));
    ISOMER_ASSIGN_OR_RETURN(
        scores, Call({OpKind::kSoftmax, {{"axis", int64_t{-1}}}}, {scores}, name + "/softmax"));
    return Call({OpKind::kSlice,
                 {{"starts", std::vector<int64_t>{0, 0, 0, 0}},
                  {"sizes", with_last(s[3])},
                  {"steps", std::vector<int64_t>{1, 1, 1, 1}}}},
                {scores}, name + "/of_keys");
  }

  absl::StatusOr<TensorRef> Attention(const Node& node, const std::vector<TensorRef>& inputs) {
    const std::string name(node.name);
    const std::vector<int64_t> q = SizesOf(inputs[0]), k = SizesOf(inputs[1]);
    ISOMER_ASSIGN_OR_RETURN(
        TensorRef scaled, Call({OpKind::kScale, {{"factor", node.op.Number("scale")}}}, {inputs[0]},
                               name + "/scaled"));
    ISOMER_ASSIGN_OR_RETURN(const TensorRef keys, Repeated(inputs[1], q[1] / k[1], name + "/keys"));
    ISOMER_ASSIGN_OR_RETURN(const TensorRef values,
                            Repeated(inputs[2], q[1] / k[1], name + "/values"));
    ISOMER_ASSIGN_OR_RETURN(const TensorRef transposed,
                            Call({OpKind::kTranspose, {{"perm", std::vector<int64_t>{0, 1, 3, 2}}}},
                                 {keys}, name + "/keys/transposed"));
    ISOMER_ASSIGN_OR_RETURN(TensorRef scores,
                            Call({OpKind::kMatMul}, {scaled, transposed}, name + "/scores"));
    if (node.op.kind() == OpKind::kCappedAttention) {
      ISOMER_ASSIGN_OR_RETURN(scores, Call({OpKind::kTanh}, {scores}, name + "/tanh"));
      ISOMER_ASSIGN_OR_RETURN(scores, Call({OpKind::kScale, {{"factor", node.op.Number("cap")}}},
                                           {scores}, name + "/cap"));
    }
    const bool has_sink = node.op.kind() == OpKind::kSinkAttention;
    if (!has_sink && inputs.size() > 3) {
      ISOMER_ASSIGN_OR_RETURN(scores, Call({OpKind::kAdd}, {scores, inputs[3]}, name + "/masked"));
    }
    if (node.op.Int("causal") != 0) {
      ISOMER_ASSIGN_OR_RETURN(TensorRef mask, CausalMask(q[2], k[2]));
      ISOMER_ASSIGN_OR_RETURN(mask, InStripes(mask, node.op.Int("causal"), name + "/causal"));
      ISOMER_ASSIGN_OR_RETURN(scores, Call({OpKind::kAdd}, {scores, mask}, name + "/causal"));
    }
    if (has_sink && node.op.Int("window") > 0) {
      ISOMER_ASSIGN_OR_RETURN(TensorRef mask, FarMask(q[2], k[2], node.op.Int("window")));
      ISOMER_ASSIGN_OR_RETURN(mask, InStripes(mask, node.op.Int("causal"), name + "/near"));
      ISOMER_ASSIGN_OR_RETURN(scores, Call({OpKind::kAdd}, {scores, mask}, name + "/near"));
    }
    TensorRef shares;
    if (has_sink) {
      ISOMER_ASSIGN_OR_RETURN(shares, SharesBesideSink(scores, inputs[3], name));
    } else {
      ISOMER_ASSIGN_OR_RETURN(
          shares, Call({OpKind::kSoftmax, {{"axis", int64_t{-1}}}}, {scores}, name + "/softmax"));
    }
    return Call({OpKind::kMatMul}, {shares, values}, name);
  }

  Model& model_;
  Graph graph_;
  TensorRef unseen_ = {{-1}, 0};
  std::map<std::array<int64_t, 4>, TensorRef> masks_;  // by size, upper and diagonal
};

}  // namespace

absl::StatusOr<int> TakeAttentionApart(Model* model) { return Rewriter(model).Run(); }

}  // namespace isomer
