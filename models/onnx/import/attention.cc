// Attention and RotaryEmbedding of opset 23.
#include <cmath>
#include <limits>
#include <utility>

#include "models/onnx/import/formulas.h"
#include "models/onnx/import/operators.h"

namespace isomer {
namespace {

// [b, s, heads * e] to [b, heads, s, e].
TensorRef HeadsApart(NodeImporter& node, TensorRef x, int64_t heads) {
  if (!node.ok() || node.Rank(x) == 4) return x;
  const Sizes sizes = node.Sizes(x);
  if (!node.Expect(sizes.size() == 3 && heads >= 1 && sizes[2] % heads == 0, "[", sizes.size(),
                   " dims] do not divide into ", heads, " heads")) {
    return {};
  }
  const TensorRef apart = Reshaped(node, x, {sizes[0], sizes[1], heads, sizes[2] / heads});
  return Transposed(node, apart, {0, 2, 1, 3});
}

TensorRef HeadsTogether(NodeImporter& node, TensorRef x) {
  if (!node.ok()) return {};
  const Sizes s = node.Sizes(x);
  return Reshaped(node, Transposed(node, x, {0, 2, 1, 3}), {s[0], s[2], s[1] * s[3]});
}

// Attention of one node, its operands as [b, heads, length, features].
struct AttentionCall {
  TensorRef q, k, v;
  int64_t past = 0;  // keys before those of the node
  double scale = 1, softcap = 0;
  bool is_causal = false;
  std::vector<TensorRef> masks;  // to be added; each broadcasts to [b, heads, queries, keys]
};

double Lowest(DataType type) {
  return type == DataType::kFloat16 ? -65504 : std::numeric_limits<float>::lowest();
}

// A mask of queries and keys, its keys made as many as there are: of bools, which say what takes
// part, or of numbers, which are added.
TensorRef AdditiveMask(NodeImporter& node, TensorRef mask, const AttentionCall& call) {
  if (!node.ok()) return {};
  const DataType type = node.Type(call.q);
  const bool is_bool = node.Type(mask) == DataType::kBool;
  Sizes sizes = node.Sizes(mask);
  if (!node.Expect(!sizes.empty() && sizes.size() <= 4, "the mask has ", sizes.size(), " dims")) {
    return {};
  }
  if (is_bool)
    mask = Where(node, mask, Number(node, 0, call.q), Number(node, Lowest(type), call.q));
  if (!is_bool) mask = Cast(node, mask, type);
  const int64_t keys = node.Sizes(call.k)[2], given = sizes.back();
  if (given >= keys || !node.ok()) return mask;
  sizes.back() = keys - given;
  const TensorRef unseen = Filled(node, Lowest(type), std::move(sizes), call.q);
  return Concatenated(node, {mask, unseen}, node.Rank(mask) - 1);
}

// Of keys from the number in `lengths` [b] on: they are padding.
TensorRef PaddingMask(NodeImporter& node, TensorRef lengths, const AttentionCall& call) {
  if (!node.ok()) return {};
  const int64_t batch = node.Sizes(call.q)[0], keys = node.Sizes(call.k)[2];
  if (!node.Expect(node.Sizes(lengths) == Sizes{batch}, "nonpad_kv_seqlen has not one number for ",
                   "each of ", batch, " samples") ||
      !FitsLiteral(node, {keys})) {
    return {};
  }
  const TensorRef position =
      IntLiteral(node, {1, 1, 1, keys}, AllAxes(static_cast<int>(keys)), node.Type(lengths));
  const TensorRef is_seen =
      Apply(node, OpKind::kLess, position, Reshaped(node, lengths, {batch, 1, 1, 1}));
  return Where(node, is_seen, Number(node, 0, call.q),
               Number(node, Lowest(node.Type(call.q)), call.q));
}

// Query s sees the keys up to past + s. Half of the lowest number, so that a mask may be added.
TensorRef CausalMask(NodeImporter& node, const AttentionCall& call) {
  if (!node.ok()) return {};
  const int64_t queries = node.Sizes(call.q)[2], keys = node.Sizes(call.k)[2];
  if (!FitsLiteral(node, {queries, keys})) return {};
  std::vector<float> seen(queries * keys, 0);
  const float unseen = static_cast<float>(Lowest(node.Type(call.q)) / 2);
  for (int64_t s = 0; s < queries; ++s) {
    for (int64_t t = call.past + s + 1; t < keys; ++t) seen[s * keys + t] = unseen;
  }
  return Cast(node, FloatLiteral(node, {queries, keys}, std::move(seen)), node.Type(call.q));
}

// Each key head once for every query head that uses it: [b, heads, ..].
TensorRef ForQueryHeads(NodeImporter& node, TensorRef x, int64_t heads) {
  if (!node.ok()) return {};
  const Sizes s = node.Sizes(x);
  if (s[1] == heads) return x;
  if (!node.Expect(heads % s[1] == 0, heads, " query heads of ", s[1], " key heads")) return {};
  const TensorRef apart = Reshaped(node, x, {s[0], s[1], 1, s[2], s[3]});
  const TensorRef repeated = Expanded(node, apart, {s[0], s[1], heads / s[1], s[2], s[3]});
  return Reshaped(node, repeated, {s[0], heads, s[2], s[3]});
}

// The operators of attention have all of it.
TensorRef AddAttention(NodeImporter& node, AttentionCall call) {
  if (!node.ok()) return {};
  // The operator's causal mask ends at the lower right; the standard's begins at the upper left,
  // behind the past.
  const bool is_aligned = call.past == node.Sizes(call.k)[2] - node.Sizes(call.q)[2];
  if (call.is_causal && !is_aligned) call.masks.push_back(CausalMask(node, call));
  std::vector<TensorRef> operands = {call.q, call.k, call.v};
  for (TensorRef mask : call.masks) {
    if (operands.size() == 3) {
      operands.push_back(mask);
    } else {
      operands[3] = Apply(node, OpKind::kAdd, operands[3], mask);
    }
  }
  const bool is_causal = call.is_causal && is_aligned;
  Operator attention = {OpKind::kAttention,
                        {{"scale", call.scale}, {"causal", int64_t{is_causal}}}};
  if (call.softcap > 0) {
    attention = {OpKind::kCappedAttention,
                 {{"scale", call.scale / call.softcap},
                  {"cap", call.softcap},
                  {"causal", int64_t{is_causal}}}};
  }
  return node.Call(attention, std::move(operands), "/attention");
}

struct Scores {
  TensorRef products, weights;  // [b, heads, queries, keys]: before the masks, after the softmax
};

// softmax(cap(scale * Q K^T) + masks)
Scores AddScores(NodeImporter& node, const AttentionCall& call) {
  if (!node.ok()) return {};
  const TensorRef k = ForQueryHeads(node, call.k, node.Sizes(call.q)[1]);
  const TensorRef products =
      Scaled(node, Product(node, call.q, Transposed(node, k, {0, 1, 3, 2})), call.scale);
  TensorRef scores = products;
  if (call.softcap > 0) {
    const TensorRef capped = Apply(node, OpKind::kTanh, Scaled(node, scores, 1 / call.softcap));
    scores = Scaled(node, capped, call.softcap);
  }
  for (TensorRef mask : call.masks) scores = Apply(node, OpKind::kAdd, scores, mask);
  if (call.is_causal) scores = Apply(node, OpKind::kAdd, scores, CausalMask(node, call));
  const Operator softmax = {OpKind::kSoftmax, {{"axis", int64_t{3}}}};
  return {products, node.Call(softmax, {scores}, "/softmax")};
}

}  // namespace

// Attention(Q, K, V, mask, past_key, past_value, lengths) -> Y, present_key, present_value, scores.
void ImportAttention(NodeImporter& node) {
  AttentionCall call;
  call.q = node.Operand(0), call.k = node.Operand(1), call.v = node.Operand(2);
  const bool is_3d = node.Rank(call.q) == 3;
  const int64_t heads = node.attributes.Int("q_num_heads", 0);
  const int64_t key_heads = node.attributes.Int("kv_num_heads", 0);
  const int64_t mode = node.attributes.Int("qk_matmul_output_mode", 0);
  call.is_causal = node.attributes.Int("is_causal", 0) != 0;
  call.softcap = node.attributes.Float("softcap", 0);
  node.attributes.Ignore("softmax_precision");
  call.q = HeadsApart(node, call.q, heads);
  call.k = HeadsApart(node, call.k, key_heads);
  call.v = HeadsApart(node, call.v, key_heads);
  if (!node.ok()) return;
  const bool are_4d = node.Rank(call.q) == 4 && node.Rank(call.k) == 4 && node.Rank(call.v) == 4;
  if (!node.Expect(are_4d, "Q, K and V have not 3 or 4 dims") ||
      !node.Expect(call.softcap >= 0, "softcap is ", call.softcap) ||
      !node.Expect(mode >= 0 && mode <= 3, "qk_matmul_output_mode is ", mode) ||
      !node.Expect(node.HasInput(4) == node.HasInput(5), "past_key without past_value") ||
      !node.Expect(!node.HasInput(6) || !node.HasInput(4), "nonpad_kv_seqlen with a past")) {
    return;
  }
  if (node.HasInput(4)) {
    const TensorRef past = node.Operand(4);
    if (!node.ok() || !node.Expect(node.Rank(past) == 4, "past_key has not 4 dims")) return;
    call.past = node.Sizes(past)[2];
    call.k = Concatenated(node, {past, call.k}, 2);
    call.v = Concatenated(node, {node.Operand(5), call.v}, 2);
  }
  if (!node.ok()) return;
  call.scale =
      node.attributes.Float("scale", 1 / std::sqrt(static_cast<double>(node.Sizes(call.q)[3])));
  if (node.HasInput(3)) call.masks.push_back(AdditiveMask(node, node.Operand(3), call));
  if (node.HasInput(6)) call.masks.push_back(PaddingMask(node, node.Operand(6), call));
  // onnx 1.19 adds the masks before the cap, later texts of the same opsets after it; and they
  // number the stages between differently.
  const bool has_mask = call.is_causal || !call.masks.empty();
  if (call.softcap > 0 && has_mask) {
    return node.Refuse("softcap with a mask: texts of the standard differ in which comes first");
  }
  const bool has_scores = IsWanted(node, 3);
  if (has_scores && (mode == 1 || mode == 2) && (call.softcap > 0 || has_mask)) {
    return node.Refuse("qk_matmul_output_mode ", mode,
                       ": texts of the standard differ in which stage that is");
  }
  TensorRef y;
  if (has_scores) {
    const Scores scores = AddScores(node, call);
    if (!node.ok()) return;
    const TensorRef v = ForQueryHeads(node, call.v, node.Sizes(call.q)[1]);
    y = Product(node, scores.weights, v);
    // Before it names the output: the scores are an operand of what comes after them.
    if (has_scores) node.Define(3, mode == 3 ? scores.weights : scores.products);
  } else {
    y = AddAttention(node, call);
  }
  DefineAs(node, 0, is_3d ? HeadsTogether(node, y) : y);
  node.Define(1, call.k);
  node.Define(2, call.v);
}

// RotaryEmbedding(X, cos, sin, positions): of the first rotary_embedding_dim features of each head.
void ImportRotaryEmbedding(NodeImporter& node) {
  TensorRef x = node.Operand(0);
  const bool is_3d = node.Rank(x) == 3;
  const int64_t interleaved = node.attributes.Int("interleaved", 0);
  const int64_t heads = node.attributes.Int("num_heads", 0);
  int64_t width = node.attributes.Int("rotary_embedding_dim", 0);
  x = HeadsApart(node, x, heads);
  if (!node.ok()) return;
  const Sizes sizes = node.Sizes(x);
  if (width == 0) width = sizes[3];
  if (!node.Expect(width >= 2 && width % 2 == 0 && width <= sizes[3], "rotary_embedding_dim is ",
                   width))
    return;
  // cos and sin of [b, 1, s, width / 2], which broadcast over heads.
  TensorRef angle[2];
  for (int i : {0, 1}) {
    angle[i] = node.Operand(1 + i);
    if (node.HasInput(3)) {
      const Operator gather = {OpKind::kGather, {{"axis", int64_t{0}}}};
      angle[i] = node.Call(gather, {angle[i], node.Operand(3)}, "/angles");
    }
    if (!node.ok()) return;
    Sizes shape = node.Sizes(angle[i]);
    if (!node.Expect(shape.size() == 3, "cos and sin have not 3 dims")) return;
    shape.insert(shape.begin() + 1, 1);
    angle[i] = Reshaped(node, angle[i], std::move(shape));
  }
  std::vector<TensorRef> parts = {x};
  if (width < sizes[3]) parts = SplitInto(node, x, 3, {width, sizes[3] - width});
  const int64_t half = width / 2;
  TensorRef first, second;
  const Sizes pairs = {sizes[0], sizes[1], sizes[2], half, 1};
  if (interleaved != 0) {
    first = Sliced(node, parts[0], 3, 0, half, 2);
    second = Sliced(node, parts[0], 3, 1, half, 2);
  } else {
    const std::vector<TensorRef> halves = SplitInto(node, parts[0], 3, {half, half});
    first = halves[0], second = halves[1];
  }
  auto times = [&](TensorRef a, TensorRef b) { return Apply(node, OpKind::kMul, a, b); };
  TensorRef real = Apply(node, OpKind::kSub, times(first, angle[0]), times(second, angle[1]));
  TensorRef imaginary = Apply(node, OpKind::kAdd, times(first, angle[1]), times(second, angle[0]));
  if (interleaved != 0) {
    const TensorRef together =
        Concatenated(node, {Reshaped(node, real, pairs), Reshaped(node, imaginary, pairs)}, 4);
    parts[0] = Reshaped(node, together, {sizes[0], sizes[1], sizes[2], width});
  } else {
    parts[0] = Concatenated(node, {real, imaginary}, 3);
  }
  const TensorRef y = Concatenated(node, std::move(parts), 3);
  DefineAs(node, 0, is_3d ? HeadsTogether(node, y) : y);
}

}  // namespace isomer
