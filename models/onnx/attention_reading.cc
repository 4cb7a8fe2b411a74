#include "models/onnx/attention_reading.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "models/onnx/exclusion.h"

namespace isomer {
namespace {

class Reader {
 public:
  Reader(Model* model, std::vector<std::string>* notes) : model_(*model), notes_(*notes) {}

  void Read() {
    const int nodes = graph().num_nodes();
    for (int id = 0; id < nodes; ++id) {
      if (graph().node(id).op.kind() == OpKind::kConstant) ReadHalves(NodeId{id});
    }
    for (int id = 0; id < nodes; ++id) {
      if (graph().node(id).op.kind() == OpKind::kMatMul) ReadProduct(NodeId{id});
    }
    if (graph().num_nodes() > nodes) DropDead();
    if (excluding_ == 0) return;
    notes_.push_back(absl::StrCat(
        "assumption: the lowest number of a float type, added to scores or put in their place, "
        "excludes these keys (",
        excluding_, " of ", found_, " attentions)"));
  }

 private:
  Graph& graph() { return model_.graph; }

  // The node of that kind whose output 0 `x` is.
  const Node* Of(OpKind kind, TensorRef x) {
    const Node& node = graph().node(x.node);
    return node.op.kind() == kind && x.output == 0 ? &node : nullptr;
  }

  // A constant's values and sizes, read through what repeats it.
  struct Known {
    TensorRef once;
    const std::vector<float>* values;
    std::vector<int64_t> sizes;
  };
  std::optional<Known> ConstantOf(TensorRef x) {
    if (const Node* expand = Of(OpKind::kExpand, x)) x = expand->inputs[0];
    const Node* const leaf = Of(OpKind::kConstant, x);
    if (leaf == nullptr) return std::nullopt;
    const auto values = model_.weights.find(leaf->name);
    if (values == model_.weights.end()) return std::nullopt;
    return Known{x, &values->second, leaf->outputs[0].Sizes()};
  }

  bool IsConstant(TensorRef x, double value) {
    const std::optional<Known> known = ConstantOf(x);
    if (!known) return false;
    for (float v : *known->values) {
      if (v != value) return false;
    }
    return true;
  }

  // x of where(isnan(x), 0, x), else the tensor itself.
  TensorRef WithoutGuard(TensorRef p) {
    const Node* const where = Of(OpKind::kWhere, p);
    if (where == nullptr || !IsConstant(where->inputs[1], 0)) return p;
    const TensorRef x = where->inputs[2];
    const Node* const differs = Of(OpKind::kNot, where->inputs[0]);
    const Node* const equal = differs == nullptr ? nullptr : Of(OpKind::kEqual, differs->inputs[0]);
    if (equal == nullptr || equal->inputs[0] != x || equal->inputs[1] != x) return p;
    return Of(OpKind::kSoftmax, x) == nullptr ? p : x;
  }

  TensorRef WithoutScale(TensorRef x, double* factor) {
    while (const Node* scale = Of(OpKind::kScale, x)) {
      *factor *= scale->op.Number("factor");
      x = scale->inputs[0];
    }
    return x;
  }

  TensorRef Call(Operator op, std::vector<TensorRef> inputs, const std::string& name) {
    // Of sizes that were looked at before.
    return *graph().AddOp(std::move(op), std::move(inputs), name);
  }

  // k, of which `x` is the transpose [b,h,e,t].
  TensorRef KeysOf(TensorRef x, const std::string& name) {
    const std::vector<int64_t> sizes = graph().type(x).Sizes();
    const std::vector<int64_t> turned = {sizes[0], sizes[1], sizes[3], sizes[2]};
    if (const Node* transpose = Of(OpKind::kTranspose, x)) {
      std::vector<int64_t> perm = transpose->op.Ints("perm");
      std::swap(perm[2], perm[3]);
      const TensorRef from = transpose->inputs[0];
      if (perm == std::vector<int64_t>{0, 1, 2, 3}) return from;
      return Call({OpKind::kTranspose, {{"perm", perm}}}, {from}, name + "/keys");
    }
    if (const Node* back = Of(OpKind::kReshape, x)) {
      const Node* const transpose = Of(OpKind::kTranspose, back->inputs[0]);
      if (transpose != nullptr && transpose->op.Ints("perm") == std::vector<int64_t>{0, 2, 1} &&
          graph().type(transpose->inputs[0]).Sizes() ==
              std::vector<int64_t>{sizes[0] * sizes[1], sizes[3], sizes[2]}) {
        const Node* const apart = Of(OpKind::kReshape, transpose->inputs[0]);
        const TensorRef from = apart == nullptr ? transpose->inputs[0] : apart->inputs[0];
        if (graph().type(from).Sizes() == turned) return from;
        return Call({OpKind::kReshape, {{"shape", turned}}}, {from}, name + "/keys");
      }
    }
    return Call({OpKind::kTranspose, {{"perm", std::vector<int64_t>{0, 1, 3, 2}}}}, {x},
                name + "/keys");
  }

  // A table [1,..,t,e] of two equal halves, as those of angles are, becomes one half, put beside
  // itself where products repeat it over the other dims.
  void ReadHalves(NodeId id) {
    const Node table = graph().node(id);
    const std::vector<int64_t> sizes = table.outputs[0].Sizes();
    const auto values = model_.weights.find(table.name);
    if (sizes.size() < 2 || sizes.back() % 2 != 0 || values == model_.weights.end()) return;
    const int64_t rows = sizes[sizes.size() - 2], columns = sizes.back() / 2;
    if (rows < 2 || rows * columns * 2 != static_cast<int64_t>(values->second.size())) return;
    std::vector<float> half;
    for (int64_t row = 0; row < rows; ++row) {
      const auto begin = values->second.begin() + row * columns * 2;
      if (!std::equal(begin, begin + columns, begin + columns)) return;
      half.insert(half.end(), begin, begin + columns);
    }
    const std::string name = table.name + "/half";
    for (int other = 0; other < graph().num_nodes(); ++other) {
      const Node& user = graph().node(other);
      if (user.name == name) return;
      for (size_t o = 0; o < user.inputs.size(); ++o) {
        if (user.inputs[o].node != id) continue;
        if (user.op.kind() != OpKind::kMul || graph().type(user.inputs[1 - o]) != user.outputs[0]) {
          return;
        }
      }
    }
    TensorType type = table.outputs[0];
    type.dims = {{rows, 1}, {columns, 1}};
    const TensorRef once = graph().AddConstant(name, type);
    model_.weights[name] = std::move(half);
    graph().ReplaceUses({id, 0}, Call({OpKind::kConcat, {{"axis", int64_t{1}}}}, {once, once},
                                      table.name + "/halves"));
  }

  // Scores and what is added to them.
  struct Masked {
    TensorRef scores;
    std::optional<TensorRef> mask;
    bool causal = false, excludes = false;
  };

  // That a constant [..,s,t] lets query i see the keys up to i + t - s, and no others.
  // `sees`: what it says of one key.
  template <typename F>
  static bool IsCausal(const Known& known, int64_t queries, int64_t keys, const F& sees) {
    const size_t rank = known.sizes.size();
    if (rank < 2 || keys < queries || known.sizes[rank - 2] != queries ||
        known.sizes[rank - 1] != keys) {
      return false;
    }
    for (size_t i = 0; i < known.values->size(); ++i) {
      const int64_t key = static_cast<int64_t>(i) % keys;
      const int64_t query = static_cast<int64_t>(i) / keys % queries;
      const std::optional<bool> seen = sees((*known.values)[i]);
      if (!seen || *seen != (key <= query + keys - queries)) return false;
    }
    return true;
  }

  Masked MaskOf(TensorRef x, int64_t queries, int64_t keys) {
    if (const Node* where = Of(OpKind::kWhere, x)) {
      const std::optional<Known> condition = ConstantOf(where->inputs[0]);
      for (int seen : {1, 2}) {
        const std::optional<Known> fill = ConstantOf(where->inputs[3 - seen]);
        if (!condition || !fill || fill->values->size() != 1 || !ExcludesKeys((*fill->values)[0])) {
          continue;
        }
        auto sees = [&](float v) -> std::optional<bool> { return (v != 0) == (seen == 1); };
        if (!IsCausal(*condition, queries, keys, sees)) continue;
        return {where->inputs[seen], std::nullopt, true, true};
      }
      return {x, std::nullopt};
    }
    const Node* const add = Of(OpKind::kAdd, x);
    if (add == nullptr) return {x, std::nullopt};
    for (int side : {1, 0}) {
      const TensorRef scores = add->inputs[1 - side];
      if (!IsProduct(scores)) continue;
      Masked masked = {scores, add->inputs[side]};
      const std::optional<Known> known = ConstantOf(add->inputs[side]);
      if (!known) return masked;
      auto sees = [](float v) -> std::optional<bool> {
        if (v == 0) return true;
        return ExcludesKeys(v) ? std::optional<bool>(false) : std::nullopt;
      };
      bool open = true;
      for (float v : *known->values) {
        masked.excludes |= ExcludesKeys(v);
        open &= v == 0;
      }
      if (open) return {scores, std::nullopt};
      if (IsCausal(*known, queries, keys, sees)) return {scores, std::nullopt, true, true};
      masked.mask = known->once;  // attention repeats it.
      return masked;
    }
    return {x, std::nullopt};
  }

  // Some key may have minus infinity from the mask, and with it all keys of a query.
  bool MayExcludeAll(const Masked& masked) {
    if (!masked.mask) return false;
    const std::optional<Known> known = ConstantOf(*masked.mask);
    if (!known) return true;
    return std::any_of(known->values->begin(), known->values->end(),
                       [](float v) { return !std::isfinite(v); });
  }

  bool IsProduct(TensorRef x) {
    double factor = 1;
    return Of(OpKind::kMatMul, WithoutScale(x, &factor)) != nullptr;
  }

  void ReadProduct(NodeId id) {
    const Node product = graph().node(id);
    const std::vector<int64_t> sizes = product.outputs[0].Sizes();
    const Node* const softmax = Of(OpKind::kSoftmax, WithoutGuard(product.inputs[0]));
    if (softmax == nullptr || sizes.size() != 4) return;
    const std::vector<int64_t> weights = graph().type(softmax->inputs[0]).Sizes();
    const int64_t axis = softmax->op.Int("axis");
    if (weights.size() != 4 || (axis != -1 && axis != 3)) return;
    const Masked masked = MaskOf(softmax->inputs[0], weights[2], weights[3]);
    double scale = 1;
    const TensorRef scores = WithoutScale(masked.scores, &scale);
    const Node* const dot = Of(OpKind::kMatMul, scores);
    if (dot == nullptr || graph().type(scores).Sizes() != weights) return;
    const TensorRef q = WithoutScale(dot->inputs[0], &scale);
    const TensorRef turned = WithoutScale(dot->inputs[1], &scale), v = product.inputs[1];
    const bool is_guarded = softmax != &graph().node(product.inputs[0].node);
    const bool is_plain = !masked.mask && !masked.causal && q == dot->inputs[0] &&
                          turned == dot->inputs[1] && Of(OpKind::kReshape, turned) == nullptr &&
                          !is_guarded;
    if (is_plain || (is_guarded && MayExcludeAll(masked))) return;
    for (TensorRef x : {turned, v}) {
      const std::vector<int64_t> of = graph().type(x).Sizes();
      if (of.size() != 4 || of[0] != sizes[0] || of[1] != sizes[1]) return;
    }
    if (graph().type(q).Sizes().size() != 4) return;
    std::vector<TensorRef> operands = {q, KeysOf(turned, product.name), v};
    if (masked.mask) operands.push_back(*masked.mask);
    const absl::StatusOr<TensorRef> attention =
        graph().AddOp({OpKind::kAttention, {{"scale", scale}, {"causal", int64_t{masked.causal}}}},
                      std::move(operands), product.name);
    if (!attention.ok() || graph().type(*attention) != product.outputs[0]) return;
    graph().ReplaceUses({id, 0}, *attention);
    ++found_;
    excluding_ += masked.excludes;
  }

  // Calls that no output needs, and constants that nothing uses.
  void DropDead() {
    const std::vector<std::vector<Graph::Use>> users = graph().Users();
    std::vector<bool> is_output(graph().num_nodes(), false);
    for (const Graph::NamedOutput& output : graph().outputs()) {
      is_output[output.tensor.node.value] = true;
    }
    Graph kept;
    std::vector<NodeId> ids(graph().num_nodes());
    for (NodeId id : graph().TopologicalOrder()) {
      const Node& node = graph().node(id);
      const OpKind kind = node.op.kind();
      const bool is_used = !users[id.value].empty() || is_output[id.value];
      if (!is_used && kind == OpKind::kConstant) {
        model_.weights.erase(node.name);
        continue;
      }
      if (!is_used && !IsLeaf(kind)) continue;
      if (kind == OpKind::kInput) {
        ids[id.value] = kept.AddInput(node.name, node.outputs[0]).node;
      } else if (kind == OpKind::kWeight) {
        ids[id.value] = kept.AddWeight(node.name, node.outputs[0]).node;
      } else if (kind == OpKind::kConstant) {
        ids[id.value] = kept.AddConstant(node.name, node.outputs[0]).node;
      } else {
        std::vector<TensorRef> inputs = node.inputs;
        for (TensorRef& input : inputs) input.node = ids[input.node.value];
        ids[id.value] = *kept.Add(node.op, std::move(inputs), node.name);
      }
    }
    for (const Graph::NamedOutput& output : graph().outputs()) {
      kept.AddOutput(output.name, {ids[output.tensor.node.value], output.tensor.output});
    }
    graph() = std::move(kept);
  }

  Model& model_;
  std::vector<std::string>& notes_;
  int found_ = 0, excluding_ = 0;
};

}  // namespace

void ReadAttention(Model* model, std::vector<std::string>* notes) { Reader(model, notes).Read(); }

}  // namespace isomer
