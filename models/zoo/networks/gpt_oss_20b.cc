#include "absl/strings/str_cat.h"
#include "models/zoo/blocks/expert_blocks.h"
#include "models/zoo/blocks/transformer_blocks.h"
#include "models/zoo/models.h"

namespace isomer {
namespace {

absl::StatusOr<Model> BuildGptOss(const ZooArguments& arguments) {
  constexpr double kTheta = 150000;
  ModelBuilder b;
  const int64_t hidden = arguments.at("hidden"), seq = arguments.at("seq");
  const int64_t vocabulary = arguments.at("vocabulary"), window = arguments.at("window");
  AttentionSizes sizes = {.heads = arguments.at("heads"),
                          .head_size = arguments.at("head_size"),
                          .key_heads = arguments.at("key_heads"),
                          .biases = true,
                          .causal = true,
                          .sinks = true};
  // The softmax of the chosen scores is that of all, over the sum of the chosen.
  const RoutedSizes experts = {.experts = arguments.at("experts"),
                               .chosen = arguments.at("chosen"),
                               .intermediate = arguments.at("intermediate"),
                               .capacity_percent = arguments.at("capacity_percent"),
                               .biases = true,
                               .gate = RoutedSizes::Gate::kClamped};
  const TensorRef ids = TokenIds(b, "input_ids", arguments.at("batch"), seq);
  TensorRef x = EmbeddedTokens(b, b.Weight("tokens.weight", {vocabulary, hidden}), ids, "tokens");
  const Rotation rotation = RotationTables(b, seq, sizes.head_size, kTheta);
  for (int64_t layer = 0; layer < arguments.at("layers"); ++layer) {
    const std::string name = absl::StrCat("layer", layer);
    // Every other layer sees all keys.
    sizes.window = layer % 2 == 0 && window < seq ? window : 0;
    TensorRef y = RmsNorm(b, x, name + "/attention/norm");
    y = Attention(b, y, y, sizes, name + "/attention", &rotation);
    x = b.Add(x, y, name + "/attention/residual");
    y = RmsNorm(b, x, name + "/moe/norm");
    y = RoutedExperts(b, y, experts, name + "/moe");
    x = b.Add(x, y, name + "/moe/residual");
  }
  b.Output("logits", UntiedLogits(b, RmsNorm(b, x, "norm"), vocabulary));
  return b.Build();
}

}  // namespace

ZooModel GptOss20B() {
  return {
      .name = "gpt_oss_20b",
      .description =
          "gpt-oss-20b: attention with sinks, in every other layer to 128 keys; each token uses "
          "four of 32 experts; logits of each next token",
      .parameters = {ZooCount("layers", 24),
                     {.name = "hidden", .value = 2880},
                     {.name = "heads", .value = 64},
                     {.name = "key_heads", .value = 8},
                     {.name = "head_size", .value = 64, .smallest = 2},
                     {.name = "window", .value = 128},
                     {.name = "experts", .value = 32},
                     {.name = "chosen", .value = 4},
                     {.name = "intermediate", .value = 2880},
                     {.name = "capacity_percent", .value = 125, .largest = 1000000},
                     {.name = "vocabulary", .value = 201088},
                     {.name = "seq", .value = 4096},
                     {.name = "batch", .value = 16}},
      .build = BuildGptOss,
      .small =
          "layers=2&hidden=32&heads=16&key_heads=8&head_size=2&window=2&experts=16&chosen=4&"
          "intermediate=32&vocabulary=64&seq=4&batch=16",
      .source = "OpenAI, 2025 (gpt-oss model card), table 1, and its published configuration",
      .published_parameters = 20914757184,
      .notes =
          "an expert takes 1.25 times its even share of a sequence, and drops what exceeds it, "
          "where gpt-oss drops nothing; the rotation is not scaled to longer sequences (YaRN); "
          "weights in the precision of the model, not MXFP4; no auxiliary loss"};
}

}  // namespace isomer
