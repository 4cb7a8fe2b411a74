#include <optional>

#include "absl/strings/str_cat.h"
#include "models/zoo/blocks/expert_blocks.h"
#include "models/zoo/blocks/transformer_blocks.h"
#include "models/zoo/models.h"

namespace isomer {
namespace {

absl::StatusOr<Model> BuildMixtral(const ZooArguments& arguments) {
  constexpr double kTheta = 1e6;
  constexpr double kAuxiliaryWeight = 0.02;
  ModelBuilder b;
  const int64_t hidden = arguments.at("hidden"), seq = arguments.at("seq");
  const bool dropless = arguments.at("dropless") == 1;
  const int64_t vocabulary = arguments.at("vocabulary"), batch = arguments.at("batch");
  AttentionSizes sizes = HeadsOf(b, hidden, arguments.at("heads"));
  sizes.key_heads = arguments.at("key_heads");
  sizes.biases = false;
  sizes.causal = true;
  // Softmax over the two largest logits is top2_gating's g / (g1 + g2).
  ExpertLayers experts(b, {.experts = arguments.at("experts"),
                           .intermediate = arguments.at("intermediate"),
                           .capacity_percent = arguments.at("capacity_percent"),
                           .random = false,
                           .gated = true});
  const TensorRef ids = TokenIds(b, "input_ids", batch, seq);
  TensorRef x = EmbeddedTokens(b, b.Weight("tokens.weight", {vocabulary, hidden}), ids, "tokens");
  const std::optional<KeyValueCache> cache = CacheOf(b, arguments, sizes);
  if (cache.has_value()) sizes.cache = &*cache;
  const Rotation rotation = cache.has_value() ? RotationAtRows(b, *cache, sizes.head_size, kTheta)
                                              : RotationTables(b, seq, sizes.head_size, kTheta);
  for (int64_t layer = 0; layer < arguments.at("layers"); ++layer) {
    const std::string name = absl::StrCat("layer", layer);
    TensorRef y = RmsNorm(b, x, name + "/attention/norm");
    y = Attention(b, y, y, sizes, name + "/attention", &rotation);
    x = b.Add(x, y, name + "/attention/residual");
    y = RmsNorm(b, x, name + "/moe/norm");
    y = dropless ? experts.DroplessLayer(y, name + "/moe") : experts.Layer(y, name + "/moe");
    x = b.Add(x, y, name + "/moe/residual");
  }
  if (cache.has_value()) x = LastTokens(b, x);
  const TensorRef logits = UntiedLogits(b, RmsNorm(b, x, "norm"), vocabulary);
  b.Output("logits", logits);
  if (dropless && arguments.at("aux") == 1) {
    b.Fail(absl::InvalidArgumentError("aux=1 is of capacities, which dropless=1 has not"));
  }
  if (arguments.at("aux") == 1 && b.ok()) experts.AddLoss(logits, batch, kAuxiliaryWeight);
  return b.Build();
}

}  // namespace

ZooModel Mixtral() {
  return {
      .name = "mixtral",
      .description =
          "Mixtral 8x7B: each token uses two of eight experts; logits of each next token",
      .parameters = {ZooCount("layers", 32),
                     {.name = "hidden", .value = 4096},
                     {.name = "heads", .value = 32},
                     {.name = "key_heads", .value = 8},
                     {.name = "experts", .value = 8, .smallest = 2},
                     {.name = "intermediate", .value = 14336},
                     {.name = "capacity_percent", .value = 125, .largest = 1000000},
                     {.name = "vocabulary", .value = 32000},
                     {.name = "seq", .value = 4096},
                     ZooSwitch("dropless", false),
                     ZooSwitch("aux", false),
                     CacheParameter(),
                     {.name = "batch", .value = 16}},
      .build = BuildMixtral,
      .small =
          "layers=1&hidden=32&heads=16&key_heads=8&experts=16&intermediate=32&vocabulary=64&"
          "seq=4&aux=1&batch=16",
      .source = "Jiang et al., 2024, table 1",
      .published_parameters = 46702792704,
      .notes =
          "GShard's gating without its random choice: an expert takes 1.25 times its even share "
          "of a sequence, and drops what exceeds it; Mixtral drops nothing, which is `dropless=1`, "
          "a product of each row with the matrix of its expert; `aux=1` adds the auxiliary loss; "
          "`cache=N` keeps "
          "keys and values of N tokens from step to step (docs/inference.md)"};
}

}  // namespace isomer
