#include "models/zoo/blocks/transformer_blocks.h"

#include <cmath>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"

namespace isomer {
namespace {

// Elements of a table of angles.
constexpr int64_t kMaxTable = int64_t{1} << 27;

// [batch, length, heads * size] -> [batch, heads, length, size].
TensorRef SplitHeads(ModelBuilder& b, TensorRef x, int64_t heads, int64_t size,
                     const std::string& name) {
  x = b.Reshape(x, {b.Size(x, 0), b.Size(x, 1), heads, size}, name + "/split");
  return b.Transpose(x, {0, 2, 1, 3}, name + "/heads");
}

TensorRef Rows(ModelBuilder& b, TensorRef x) {
  return b.Reshape(x, {b.Size(x, 0) * b.Size(x, 1), b.Size(x, 2)}, "logits/rows");
}

}  // namespace

TensorRef LayerNorm(ModelBuilder& b, TensorRef x, const std::string& name, double epsilon) {
  const int64_t hidden = b.Size(x, -1);
  const TensorRef gamma = b.Weight(name + ".weight", {hidden});
  const TensorRef beta = b.Weight(name + ".bias", {hidden});
  return b.Call({OpKind::kLayerNorm, {{"epsilon", epsilon}}}, {x, gamma, beta}, name);
}

TensorRef RmsNorm(ModelBuilder& b, TensorRef x, const std::string& name, double epsilon) {
  const TensorRef gamma = b.Weight(name + ".weight", {b.Size(x, -1)});
  return b.Call({OpKind::kRmsNorm, {{"epsilon", epsilon}}}, {x, gamma}, name);
}

TensorRef Projection(ModelBuilder& b, TensorRef x, int64_t outputs, bool biases,
                     const std::string& name) {
  return biases ? b.Dense(x, outputs, name) : b.Product(x, outputs, name);
}

TensorRef TokenIds(ModelBuilder& b, const std::string& name, int64_t batch, int64_t length) {
  return b.Input(name, {batch, length}, DataType::kInt64);
}

TensorRef EmbeddedTokens(ModelBuilder& b, TensorRef table, TensorRef ids, const std::string& name) {
  return b.Call(OpKind::kEmbedding, {table, ids}, name);
}

TensorRef AddPositions(ModelBuilder& b, TensorRef x, const std::string& name,
                       const KeyValueCache* cache) {
  const int64_t tokens = b.Size(x, 1), width = b.Size(x, 2);
  const int64_t length = cache == nullptr ? tokens : cache->length;
  TensorRef places = b.Weight(name + ".weight", {1, length, width});
  if (cache != nullptr) {
    places = b.Reshape(places, {length, width}, name + "/table");
    places = AtRows(b, *cache, places, name + "/rows");
    places = b.Reshape(places, {1, tokens, width}, name + "/of_tokens");
  }
  return b.Add(x, places, name);
}

Rotation RotationTables(ModelBuilder& b, int64_t length, int64_t head_size, double theta) {
  const int64_t half = head_size / 2;
  if (head_size % 2 != 0 || half > kMaxTable / length) {
    b.Fail(absl::InvalidArgumentError(absl::StrCat(
        "cannot rotate heads of size ", head_size, " in a sequence of ", length,
        ": the size must be even, and the table have at most ", kMaxTable, " elements")));
    return {};
  }
  std::vector<float> cos, sin;
  cos.reserve(length * half);
  sin.reserve(length * half);
  for (int64_t place = 0; place < length; ++place) {
    for (int64_t i = 0; i < half; ++i) {
      const double angle = static_cast<double>(place) *
                           std::pow(theta, -static_cast<double>(i) / static_cast<double>(half));
      cos.push_back(static_cast<float>(std::cos(angle)));
      sin.push_back(static_cast<float>(std::sin(angle)));
    }
  }
  return {.cos = b.Constant("rotation/cos", {length, half}, std::move(cos)),
          .sin = b.Constant("rotation/sin", {length, half}, std::move(sin))};
}

Rotation RotationAtRows(ModelBuilder& b, const KeyValueCache& cache, int64_t head_size,
                        double theta) {
  const Rotation all = RotationTables(b, cache.length, head_size, theta);
  return {.cos = AtRows(b, cache, all.cos, "rotation/cos_at_rows"),
          .sin = AtRows(b, cache, all.sin, "rotation/sin_at_rows")};
}

AttentionSizes HeadsOf(ModelBuilder& b, int64_t hidden, int64_t heads) {
  if (hidden % heads != 0) {
    b.Fail(absl::InvalidArgumentError(
        absl::StrCat("hidden=", hidden, " does not divide into heads=", heads)));
  }
  return {.heads = heads, .head_size = hidden / heads, .key_heads = heads};
}

ZooParameter CacheParameter() { return {.name = "cache", .value = 0, .smallest = 0}; }

std::optional<KeyValueCache> CacheOf(ModelBuilder& b, const ZooArguments& arguments,
                                     const AttentionSizes& sizes) {
  const int64_t length = arguments.at("cache");
  if (length == 0) return std::nullopt;
  return MakeCache(b, {.batch = arguments.at("batch"),
                       .tokens = arguments.at("seq"),
                       .length = length,
                       .key_heads = sizes.key_heads,
                       .head_size = sizes.head_size});
}

TensorRef ProjectedHeads(ModelBuilder& b, TensorRef x, int64_t heads, int64_t head_size,
                         bool biases, const std::string& name) {
  return SplitHeads(b, Projection(b, x, heads * head_size, biases, name), heads, head_size, name);
}

TensorRef MergeHeads(ModelBuilder& b, TensorRef x, const std::string& name) {
  const int64_t width = b.Size(x, 1) * b.Size(x, 3);
  x = b.Transpose(x, {0, 2, 1, 3}, name + "/rows");
  return b.Reshape(x, {b.Size(x, 0), b.Size(x, 1), width}, name + "/merged");
}

TensorRef Attention(ModelBuilder& b, TensorRef x, TensorRef memory, const AttentionSizes& sizes,
                    const std::string& name, const Rotation* rotation, const TensorRef* mask) {
  auto heads = [&](TensorRef from, int64_t count, const std::string& of, bool rotates) {
    TensorRef split =
        ProjectedHeads(b, from, count, sizes.head_size, sizes.biases, absl::StrCat(name, "/", of));
    if (rotates && sizes.norms) split = RmsNorm(b, split, absl::StrCat(name, "/", of, "/norm"));
    if (!rotates || rotation == nullptr) return split;
    return b.Call(OpKind::kRotary, {split, rotation->cos, rotation->sin},
                  absl::StrCat(name, "/", of, "/rotated"));
  };
  const TensorRef q = heads(x, sizes.heads, "query", true);
  TensorRef k = heads(memory, sizes.key_heads, "key", true);
  TensorRef v = heads(memory, sizes.key_heads, "value", false);
  bool causal = sizes.causal;
  if (sizes.cache != nullptr) {
    k = Cached(b, *sizes.cache, k, name + ".key");
    v = Cached(b, *sizes.cache, v, name + ".value");
    if (sizes.cache->decodes) {
      mask = &sizes.cache->mask;
      causal = false;
    }
  }
  Operator attention(OpKind::kAttention, {{"causal", int64_t{causal}}});
  double scale =
      sizes.scale == 0 ? 1 / std::sqrt(static_cast<double>(sizes.head_size)) : sizes.scale;
  if (sizes.cap != 0) {
    attention = {OpKind::kCappedAttention, {{"causal", int64_t{causal}}, {"cap", sizes.cap}}};
    scale /= sizes.cap;
  }
  std::vector<TensorRef> operands = {q, k, v};
  if (sizes.sinks) {
    attention = {OpKind::kSinkAttention,
                 {{"causal", int64_t{sizes.causal}}, {"window", sizes.window}}};
    operands.push_back(b.Weight(name + "/sinks", {sizes.heads}));
  }
  attention.Set("scale", scale);
  if (mask != nullptr) operands.push_back(*mask);
  const TensorRef context = b.Call(attention, std::move(operands), name + "/context");
  return Projection(b, MergeHeads(b, context, name + "/context"), b.Size(x, -1), sizes.biases,
                    name + "/output");
}

TensorRef FeedForward(ModelBuilder& b, TensorRef x, int64_t intermediate, OpKind activation,
                      const std::string& name) {
  const int64_t hidden = b.Size(x, -1);
  x = b.Call(activation, {b.Dense(x, intermediate, name + "/intermediate")}, name + "/activation");
  return b.Dense(x, hidden, name + "/output");
}

TensorRef GatedFeedForward(ModelBuilder& b, TensorRef x, int64_t intermediate,
                           const std::string& name, const Operator& activation) {
  const TensorRef gate = b.Call(activation, {b.Product(x, intermediate, name + "/gate")},
                                absl::StrCat(name, "/", activation.name()));
  const TensorRef up = b.Product(x, intermediate, name + "/up");
  return b.Product(b.Call(OpKind::kMul, {gate, up}, name + "/gated"), b.Size(x, -1),
                   name + "/down");
}

Operator GeluByTanh() {
  return {OpKind::kGeluTanh, {{"slope", std::sqrt(2 / std::acos(-1.0))}, {"cubic", 0.044715}}};
}

TensorRef PreNormLayer(ModelBuilder& b, TensorRef x, const AttentionSizes& sizes,
                       int64_t intermediate, double epsilon, const std::string& name) {
  TensorRef y = LayerNorm(b, x, name + "/attention/norm", epsilon);
  x = b.Add(x, Attention(b, y, y, sizes, name + "/attention"), name + "/attention/residual");
  y = LayerNorm(b, x, name + "/feed_forward/norm", epsilon);
  y = FeedForward(b, y, intermediate, OpKind::kGelu, name + "/feed_forward");
  return b.Add(x, y, name + "/feed_forward/residual");
}

TensorRef TiedLogits(ModelBuilder& b, TensorRef x, TensorRef table) {
  return b.Call(OpKind::kMatMul, {Rows(b, x), b.Transpose(table, {1, 0}, "logits/weight")},
                "logits");
}

TensorRef UntiedLogits(ModelBuilder& b, TensorRef x, int64_t vocabulary) {
  return b.Product(Rows(b, x), vocabulary, "logits");
}

}  // namespace isomer
