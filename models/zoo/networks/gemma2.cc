#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "models/zoo/blocks/transformer_blocks.h"
#include "models/zoo/models.h"

namespace isomer {
namespace {

constexpr double kTheta = 10000, kEpsilonOfGemma2 = 1e-6, kScoreCap = 50, kLogitCap = 30;
// Below every score, and in the range of bfloat16.
constexpr float kUnseenOfGemma2 = -1e30F;

// Keys at least `window` places before a query are not seen: [seq, seq].
TensorRef FarKeys(ModelBuilder& b, int64_t seq, int64_t window) {
  const TensorRef unseen = b.Constant("far/unseen", {1, 1}, {kUnseenOfGemma2});
  const TensorRef all =
      b.Call({OpKind::kExpand, {{"shape", std::vector<int64_t>{seq, seq}}}}, {unseen}, "far/all");
  return b.Call({OpKind::kTrilu, {{"upper", int64_t{0}}, {"k", -window}}}, {all}, "far/keys");
}

absl::StatusOr<Model> BuildGemma2(const ZooArguments& arguments) {
  ModelBuilder b;
  const int64_t hidden = arguments.at("hidden"), seq = arguments.at("seq");
  const int64_t vocabulary = arguments.at("vocabulary"), window = arguments.at("window");
  AttentionSizes sizes = {.heads = arguments.at("heads"),
                          .head_size = arguments.at("head_size"),
                          .key_heads = arguments.at("key_heads"),
                          .biases = false,
                          .causal = true,
                          .cap = kScoreCap};
  const TensorRef ids = TokenIds(b, "input_ids", arguments.at("batch"), seq);
  const TensorRef table = b.Weight("tokens.weight", {vocabulary, hidden});
  const Operator width(OpKind::kScale, {{"factor", std::sqrt(static_cast<double>(hidden))}});
  TensorRef x = b.Call(width, {EmbeddedTokens(b, table, ids, "tokens")}, "tokens/scaled");
  const Rotation rotation = RotationTables(b, seq, sizes.head_size, kTheta);
  TensorRef far;
  if (window < seq) far = FarKeys(b, seq, window);
  for (int64_t layer = 0; layer < arguments.at("layers"); ++layer) {
    const std::string name = absl::StrCat("layer", layer);
    // Every other layer sees all keys.
    const TensorRef* const mask = layer % 2 == 0 && window < seq ? &far : nullptr;
    TensorRef y = RmsNorm(b, x, name + "/attention/norm", kEpsilonOfGemma2);
    y = Attention(b, y, y, sizes, name + "/attention", &rotation, mask);
    y = RmsNorm(b, y, name + "/attention/norm_after", kEpsilonOfGemma2);
    x = b.Add(x, y, name + "/attention/residual");
    y = RmsNorm(b, x, name + "/feed_forward/norm", kEpsilonOfGemma2);
    y = GatedFeedForward(b, y, arguments.at("intermediate"), name + "/feed_forward", GeluByTanh());
    y = RmsNorm(b, y, name + "/feed_forward/norm_after", kEpsilonOfGemma2);
    x = b.Add(x, y, name + "/feed_forward/residual");
  }
  x = TiedLogits(b, RmsNorm(b, x, "norm", kEpsilonOfGemma2), table);
  x = b.Call({OpKind::kScale, {{"factor", 1 / kLogitCap}}}, {x}, "logits/small");
  x = b.Call(OpKind::kTanh, {x}, "logits/tanh");
  b.Output("logits", b.Call({OpKind::kScale, {{"factor", kLogitCap}}}, {x}, "logits/capped"));
  return b.Build();
}

}  // namespace

ZooModel Gemma2() {
  return {.name = "gemma2",
          .description = "Gemma 2, by default 2B: logits of each next token",
          .parameters = {ZooCount("layers", 26),
                         {.name = "hidden", .value = 2304},
                         {.name = "heads", .value = 8},
                         {.name = "key_heads", .value = 4},
                         {.name = "head_size", .value = 256, .smallest = 2},
                         {.name = "intermediate", .value = 9216},
                         {.name = "window", .value = 4096},
                         {.name = "vocabulary", .value = 256000},
                         {.name = "seq", .value = 8192},
                         {.name = "batch", .value = 16}},
          .build = BuildGemma2,
          .small =
              "layers=2&hidden=32&heads=16&key_heads=8&head_size=2&intermediate=32&window=4&"
              "vocabulary=64&seq=8&batch=16",
          .source = "Gemma Team, 2024 (Gemma 2), table 1",
          .published_parameters = 2614341888,
          .notes =
              "table 1 counts 590 million of embeddings and 2,024 million of the rest; a norm's "
              "weight is what the paper calls 1 + weight"};
}

}  // namespace isomer
