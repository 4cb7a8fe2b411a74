#include "models/zoo/networks/llama.h"

#include <optional>

#include "absl/strings/str_cat.h"
#include "models/zoo/blocks/transformer_blocks.h"
#include "models/zoo/models.h"

namespace isomer {

std::vector<ZooParameter> LlamaParameters(const LlamaSizes& sizes) {
  return {ZooCount("layers", sizes.layers),
          {.name = "hidden", .value = sizes.hidden},
          {.name = "heads", .value = sizes.heads},
          {.name = "key_heads", .value = sizes.key_heads},
          {.name = "intermediate", .value = sizes.intermediate},
          {.name = "vocabulary", .value = 128256},
          {.name = "seq", .value = 8192},
          ZooSwitch("norms", false),
          CacheParameter(),
          {.name = "batch", .value = 16}};
}

absl::StatusOr<Model> BuildLlama(const ZooArguments& arguments) {
  constexpr double kTheta = 500000;
  ModelBuilder b;
  const int64_t hidden = arguments.at("hidden"), seq = arguments.at("seq");
  const int64_t vocabulary = arguments.at("vocabulary");
  AttentionSizes sizes = HeadsOf(b, hidden, arguments.at("heads"));
  sizes.key_heads = arguments.at("key_heads");
  sizes.biases = false;
  sizes.causal = true;
  sizes.norms = arguments.at("norms") == 1;
  const TensorRef ids = TokenIds(b, "input_ids", arguments.at("batch"), seq);
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
    y = RmsNorm(b, x, name + "/feed_forward/norm");
    y = GatedFeedForward(b, y, arguments.at("intermediate"), name + "/feed_forward");
    x = b.Add(x, y, name + "/feed_forward/residual");
  }
  if (cache.has_value()) x = LastTokens(b, x);
  b.Output("logits", UntiedLogits(b, RmsNorm(b, x, "norm"), vocabulary));
  return b.Build();
}

ZooModel Llama() {
  return {
      .name = "llama",
      .description = "Llama 3, by default 8B: logits of each next token",
      .parameters = LlamaParameters(
          {.layers = 32, .hidden = 4096, .heads = 32, .key_heads = 8, .intermediate = 14336}),
      .build = BuildLlama,
      .small =
          "layers=1&hidden=32&heads=16&key_heads=8&intermediate=32&vocabulary=64&seq=8&"
          "batch=16",
      .source = "Grattafiori et al., 2024 (Llama 3), table 3",
      .published_parameters = 8030261248,
      .notes =
          "the rotation is that of 8192 tokens, without scaling for longer sequences; `norms=1` "
          "has an RMSNorm of each query and key, as Qwen3; `cache=N` keeps keys and values of N "
          "tokens from step to step (docs/inference.md)"};
}

}  // namespace isomer
