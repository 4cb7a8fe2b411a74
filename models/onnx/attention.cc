// Attention and RotaryEmbedding of opset 23.
#include <cmath>
#include <limits>
#include <utility>

#include "models/onnx/formulas.h"
#include "models/onnx/operators.h"

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

// A mask that is added: of bools, 0 where true and the lowest number where false.
TensorRef AdditiveMask(NodeImporter& node, TensorRef mask, TensorRef like) {
  if (!node.ok() || node.Type(mask) != DataType::kBool) return mask;
  const double lowest =
      node.Type(like) == DataType::kFloat16 ? -65504 : std::numeric_limits<float>::lowest();
  return Where(node, mask, Number(node, 0, like), Number(node, lowest, like));
}

}  // namespace

// Attention(Q, K, V, mask, past_key, past_value) -> Y, present_key, present_value.
void ImportAttention(NodeImporter& node) {
  TensorRef q = node.Operand(0), k = node.Operand(1), v = node.Operand(2);
  const bool is_3d = node.Rank(q) == 3;
  const int64_t heads = node.attributes.Int("q_num_heads", 0);
  const int64_t key_heads = node.attributes.Int("kv_num_heads", 0);
  const bool causal = node.attributes.Int("is_causal", 0) != 0;
  node.attributes.Ignore("softmax_precision");
  node.attributes.Ignore("qk_matmul_output_mode");  // of output 3, which is not computed
  if (node.attributes.Float("softcap", 0) != 0) return node.Refuse("softcap");
  if (node.HasInput(6)) return node.Refuse("nonpad_kv_seqlen");
  q = HeadsApart(node, q, heads);
  k = HeadsApart(node, k, key_heads);
  v = HeadsApart(node, v, key_heads);
  if (node.HasInput(4)) k = Concatenated(node, {node.Operand(4), k}, 2);
  if (node.HasInput(5)) v = Concatenated(node, {node.Operand(5), v}, 2);
  if (!node.ok()) return;
  const double width = static_cast<double>(node.Sizes(q)[3]);
  const double scale = node.attributes.Float("scale", 1 / std::sqrt(width));
  const int64_t queries = node.Sizes(q)[2], keys = node.Sizes(k)[2];
  // The standard's causal mask begins at the upper left, the operator's ends at the lower right.
  const bool is_aligned = queries == keys || node.HasInput(4);
  std::vector<TensorRef> operands = {q, k, v};
  if (node.HasInput(3)) operands.push_back(AdditiveMask(node, node.Operand(3), q));
  if (causal && !is_aligned) {
    if (!FitsLiteral(node, {queries, keys})) return;
    std::vector<float> seen(queries * keys, 0);
    for (int64_t s = 0; s < queries; ++s) {
      for (int64_t t = s + 1; t < keys; ++t) {
        seen[s * keys + t] = std::numeric_limits<float>::lowest() / 2;
      }
    }
    const TensorRef mask =
        Cast(node, FloatLiteral(node, {queries, keys}, std::move(seen)), node.Type(q));
    if (operands.size() == 4) {
      operands[3] = Apply(node, OpKind::kAdd, operands[3], mask);
    } else {
      operands.push_back(mask);
    }
  }
  const Operator attention = {OpKind::kAttention,
                              {{"scale", scale}, {"causal", int64_t{causal && is_aligned}}}};
  const TensorRef y = node.Call(attention, std::move(operands), "/attention");
  DefineAs(node, 0, is_3d ? HeadsTogether(node, y) : y);
  node.Define(1, k);
  node.Define(2, v);
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
