#include "models/onnx/graph/attention_reading.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "models/onnx/graph/constant_runs.h"
#include "models/onnx/graph/drop_unused.h"
#include "models/onnx/graph/exclusion.h"
#include "pcg/ir/operator_facts.h"

namespace isomer {
namespace {

class AttentionReader {
 public:
  explicit AttentionReader(Model* model) : model_(*model) {}

  void Read() {
    const int nodes = graph().num_nodes();
    for (int id = 0; id < nodes; ++id) {
      if (graph().node(id).op.kind() == OpKind::kConstant) ReadHalves(NodeId{id});
    }
    constants_.emplace(&model_);
    for (int id = 0; id < nodes; ++id) {
      if (graph().node(id).op.kind() == OpKind::kMatMul) ReadProduct(NodeId{id});
    }
    if (graph().num_nodes() > nodes) DropUnused(&model_);
    if (assuming_ == 0) return;
    model_.assumptions.push_back(
        absl::StrCat("numbers of ", kHighestExclusion,
                     " and less, added to scores or put in their place, exclude these keys (",
                     assuming_, " of ", found_, " attentions)"));
  }

 private:
  // Calls that are looked at, behind scores and their masks.
  static constexpr size_t kMostTerms = 64;
  // Numbers of a mask that the model is to hold: those of 8,192 tokens. Larger ones stay computed.
  static constexpr int64_t kMostStored = int64_t{1} << 26;

  Graph& graph() { return model_.graph; }

  // The node of that kind whose output 0 `x` is.
  const Node* Of(OpKind kind, TensorRef x) {
    const Node& node = graph().node(x.node);
    return node.op.kind() == kind && x.output == 0 ? &node : nullptr;
  }

  // That all runs of a tensor that follows from constants are as `is` says.
  template <typename F>
  bool IsConstantOf(TensorRef x, const F& is) {
    const TensorRuns* const known = constants_->Of(x);
    return known != nullptr && std::all_of(known->runs.begin(), known->runs.end(), is);
  }
  bool IsConstant(TensorRef x, double value) {
    return IsConstantOf(x,
                        [&](const ElementRun& run) { return run.first == value && run.step == 0; });
  }

  // The number that such a tensor is everywhere.
  std::optional<double> NumberOf(TensorRef x) {
    const TensorRuns* const known = constants_->Of(x);
    if (known == nullptr || !IsConstant(x, known->runs[0].first)) return std::nullopt;
    return known->runs[0].first;
  }

  // A mask that follows from constants becomes numbers that the model holds, without what repeats
  // it, which attention does.
  TensorRef Stored(TensorRef mask) {
    const TensorRuns* const known = constants_->Of(mask);
    if (known == nullptr || known->num_rows() * known->row_size() > kMostStored) return mask;
    if (const Node* expand = Of(OpKind::kExpand, mask)) mask = expand->inputs[0];
    if (Of(OpKind::kConstant, mask) != nullptr) return mask;
    const auto [stored, is_new] = stored_.try_emplace(mask);
    if (is_new) {
      const std::string name = absl::StrCat(graph().node(mask.node).name, "/once");
      const std::vector<double> numbers = known->Written();
      model_.weights[name] = std::vector<float>(numbers.begin(), numbers.end());
      stored->second =
          graph().AddConstant(name, SequentialType(known->sizes, graph().type(mask).dtype));
    }
    return stored->second;
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
    std::vector<TensorRef> masks;
    bool causal = false, assumes = false;
  };

  // That a constant [..,s,t] lets query i see the keys up to i + t - s, and no others.
  // `sees`: what it says of one key.
  template <typename F>
  static bool IsCausal(const TensorRuns& known, int64_t queries, int64_t keys, const F& sees) {
    const size_t rank = known.sizes.size();
    if (rank < 2 || keys < queries || known.sizes[rank - 2] != queries ||
        known.sizes[rank - 1] != keys) {
      return false;
    }
    for (int64_t row = 0, run = 0; row < known.num_rows(); ++row) {
      const int64_t last = row % queries + keys - queries;
      for (int64_t begin = 0; run < known.rows[row]; begin = known.runs[run++].end) {
        const ElementRun& of = known.runs[run];
        const std::optional<bool> seen = of.step == 0 ? sees(of.first) : std::nullopt;
        if (!seen || (*seen ? of.end - 1 > last : begin <= last)) return false;
      }
    }
    return true;
  }

  // Takes what is added to scores, or put in their place, off `x`, one after the other.
  Masked MaskOf(TensorRef x, int64_t queries, int64_t keys) {
    Masked masked = {x, {}};
    while (TakeCausalWhere(queries, keys, &masked) || TakeAdded(queries, keys, &masked)) continue;
    return masked;
  }

  bool TakeCausalWhere(int64_t queries, int64_t keys, Masked* masked) {
    const Node* const where = Of(OpKind::kWhere, masked->scores);
    const TensorRuns* const condition =
        where == nullptr ? nullptr : constants_->Of(where->inputs[0]);
    if (condition == nullptr) return false;
    for (int seen : {1, 2}) {
      const std::optional<double> fill = NumberOf(where->inputs[3 - seen]);
      if (!fill || !ExcludesKeys(*fill)) continue;
      auto sees = [&](double v) -> std::optional<bool> { return (v != 0) == (seen == 1); };
      if (!IsCausal(*condition, queries, keys, sees)) continue;
      masked->scores = where->inputs[seen];
      masked->causal = true;
      masked->assumes |= IsFiniteExclusion(*fill);
      return true;
    }
    return false;
  }

  bool TakeAdded(int64_t queries, int64_t keys, Masked* masked) {
    const Node* const add = Of(OpKind::kAdd, masked->scores);
    if (add == nullptr) return false;
    const int side = HasProduct(add->inputs[0]) ? 1 : 0;
    if (!HasProduct(add->inputs[1 - side])) return false;
    masked->scores = add->inputs[1 - side];
    const TensorRef mask = add->inputs[side];
    const TensorRuns* const known = constants_->Of(mask);
    if (known == nullptr) {
      masked->masks.push_back(mask);
      return true;
    }
    auto sees = [](double v) -> std::optional<bool> {
      if (v == 0) return true;
      return ExcludesKeys(v) ? std::optional<bool>(false) : std::nullopt;
    };
    if (IsCausal(*known, queries, keys, sees)) {
      masked->causal = true;
      masked->assumes |=
          !IsConstantOf(mask, [](const ElementRun& run) { return !IsFiniteExclusion(run.first); });
    } else if (!IsConstant(mask, 0)) {
      masked->masks.push_back(mask);
    }
    return true;
  }

  // Some key may have minus infinity from a mask, and with it all keys of a query.
  bool MayExcludeAll(const Masked& masked) {
    return !std::all_of(masked.masks.begin(), masked.masks.end(),
                        [&](TensorRef mask) { return IsFinite(mask); });
  }

  // Made of trained weights and finite constants, by what adds, scales and selects: a table of
  // biases by distance is.
  bool IsFinite(TensorRef x) {
    std::vector<TensorRef> terms = {x};
    for (size_t i = 0; i < terms.size(); ++i) {
      if (i == kMostTerms) return false;
      const Node& node = graph().node(terms[i].node);
      const OpKind kind = node.op.kind();
      if (!IsFloat(graph().type(terms[i]).dtype) || kind == OpKind::kWeight) continue;
      if (constants_->Of(terms[i]) != nullptr) {
        auto is_finite = [](const ElementRun& run) { return std::isfinite(run.first); };
        if (!IsConstantOf(terms[i], is_finite)) return false;
      } else if (IsLayout(kind) || IsLookUp(kind) || kind == OpKind::kScale ||
                 kind == OpKind::kAdd || kind == OpKind::kMul || kind == OpKind::kExpand) {
        terms.insert(terms.end(), node.inputs.begin(), node.inputs.end());
      } else {
        return false;
      }
    }
    return true;
  }

  // x of scale(tanh(x); cap), else the tensor itself.
  TensorRef WithoutCap(TensorRef x, std::optional<double>* cap) {
    double factor = 1;
    const Node* const tanh = Of(OpKind::kTanh, WithoutScale(x, &factor));
    if (tanh == nullptr) return x;
    *cap = factor;
    return tanh->inputs[0];
  }

  // Whether it is a product, scaled, capped, something added to it, or masked.
  bool HasProduct(TensorRef x) {
    std::vector<TensorRef> terms = {x};
    for (size_t i = 0; i < std::min(terms.size(), kMostTerms); ++i) {
      std::optional<double> cap;
      double factor = 1;
      const TensorRef scores = WithoutScale(WithoutCap(terms[i], &cap), &factor);
      if (Of(OpKind::kMatMul, scores) != nullptr) return true;
      const Node& node = graph().node(terms[i].node);
      if (node.op.kind() != OpKind::kAdd && node.op.kind() != OpKind::kWhere) continue;
      for (TensorRef input : node.inputs) {
        if (std::find(terms.begin(), terms.end(), input) == terms.end()) terms.push_back(input);
      }
    }
    return false;
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
    std::optional<double> cap;
    double scale = 1;
    const TensorRef scores = WithoutScale(WithoutCap(masked.scores, &cap), &scale);
    const Node* const dot = Of(OpKind::kMatMul, scores);
    if (dot == nullptr || graph().type(scores).Sizes() != weights) return;
    const TensorRef q = WithoutScale(dot->inputs[0], &scale);
    const TensorRef turned = WithoutScale(dot->inputs[1], &scale), v = product.inputs[1];
    const bool is_guarded = softmax != &graph().node(product.inputs[0].node);
    const bool is_plain = masked.masks.empty() && !masked.causal && !cap && q == dot->inputs[0] &&
                          turned == dot->inputs[1] && Of(OpKind::kReshape, turned) == nullptr &&
                          !is_guarded;
    if (is_plain || (is_guarded && MayExcludeAll(masked))) return;
    for (TensorRef x : {turned, v}) {
      const std::vector<int64_t> of = graph().type(x).Sizes();
      if (of.size() != 4 || of[0] != sizes[0] || of[1] != sizes[1]) return;
    }
    if (graph().type(q).Sizes().size() != 4) return;
    std::vector<TensorRef> operands = {q, KeysOf(turned, product.name), v};
    for (size_t m = 0; m < masked.masks.size(); ++m) {
      // Those nearer to the scores first.
      const TensorRef mask = Stored(masked.masks[masked.masks.size() - 1 - m]);
      operands.resize(4, mask);
      if (m > 0) operands[3] = Call(OpKind::kAdd, {operands[3], mask}, product.name + "/masks");
    }
    Operator op = {OpKind::kAttention, {{"scale", scale}, {"causal", int64_t{masked.causal}}}};
    if (cap) {
      op = {OpKind::kCappedAttention,
            {{"scale", scale}, {"cap", *cap}, {"causal", int64_t{masked.causal}}}};
    }
    const absl::StatusOr<TensorRef> attention =
        graph().AddOp(std::move(op), std::move(operands), product.name);
    if (!attention.ok() || graph().type(*attention) != product.outputs[0]) return;
    graph().ReplaceUses({id, 0}, *attention);
    ++found_;
    assuming_ += masked.assumes;
  }

  Model& model_;
  std::optional<ConstantRuns> constants_;
  std::map<TensorRef, TensorRef> stored_;  // masks
  int found_ = 0, assuming_ = 0;
};

}  // namespace

void ReadAttention(Model* model) { AttentionReader(model).Read(); }

}  // namespace isomer
