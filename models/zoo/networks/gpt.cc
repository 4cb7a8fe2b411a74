#include "models/zoo/networks/gpt.h"

#include <optional>

#include "absl/strings/str_cat.h"
#include "models/zoo/blocks/transformer_blocks.h"
#include "models/zoo/models.h"

namespace isomer {

std::vector<ZooParameter> GptParameters(int64_t layers, int64_t hidden, int64_t heads, bool tied) {
  return {ZooCount("layers", layers),
          {.name = "hidden", .value = hidden},
          {.name = "heads", .value = heads},
          {.name = "vocabulary", .value = 50257},
          {.name = "seq", .value = 2048},
          ZooSwitch("tied", tied),
          CacheParameter(),
          {.name = "batch", .value = 16}};
}

absl::StatusOr<Model> BuildGpt(const ZooArguments& arguments) {
  constexpr double kEpsilon = 1e-5;
  ModelBuilder b;
  const int64_t hidden = arguments.at("hidden");
  AttentionSizes sizes = HeadsOf(b, hidden, arguments.at("heads"));
  sizes.causal = true;
  const TensorRef ids = TokenIds(b, "input_ids", arguments.at("batch"), arguments.at("seq"));
  const TensorRef table = b.Weight("tokens.weight", {arguments.at("vocabulary"), hidden});
  const std::optional<KeyValueCache> cache = CacheOf(b, arguments, sizes);
  if (cache.has_value()) sizes.cache = &*cache;
  TensorRef x = AddPositions(b, EmbeddedTokens(b, table, ids, "tokens"), "positions", sizes.cache);
  for (int64_t layer = 0; layer < arguments.at("layers"); ++layer) {
    x = PreNormLayer(b, x, sizes, 4 * hidden, kEpsilon, absl::StrCat("layer", layer));
  }
  if (cache.has_value()) x = LastTokens(b, x);
  x = LayerNorm(b, x, "norm", kEpsilon);
  b.Output("logits", arguments.at("tied") == 1 ? TiedLogits(b, x, table)
                                               : UntiedLogits(b, x, arguments.at("vocabulary")));
  return b.Build();
}

ZooModel Gpt() {
  return {.name = "gpt",
          .description = "GPT, by default the smallest of GPT-3: logits of each next token",
          .parameters = GptParameters(12, 768, 12, /*tied=*/true),
          .build = BuildGpt,
          .small = "layers=1&hidden=32&heads=16&vocabulary=64&seq=8&batch=16",
          .source = "Radford et al., 2019; Brown et al., 2020, table 2.1, 125M",
          .published_parameters = 124439808,
          .published_for = "seq=1024",
          .notes =
              "all layers attend to all earlier tokens (every other layer of GPT-3 to some); "
              "embedding and logits share their table; no dropout; the count is that of GPT-2; "
              "`cache=N` keeps keys and values of N tokens from step to step (docs/inference.md)"};
}

}  // namespace isomer
