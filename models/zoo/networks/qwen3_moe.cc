#include "absl/strings/str_cat.h"
#include "models/zoo/blocks/expert_blocks.h"
#include "models/zoo/blocks/transformer_blocks.h"
#include "models/zoo/models.h"

namespace isomer {
namespace {

absl::StatusOr<Model> BuildQwen3Moe(const ZooArguments& arguments) {
  constexpr double kTheta = 1e6, kEpsilon = 1e-6;
  ModelBuilder b;
  const int64_t hidden = arguments.at("hidden"), seq = arguments.at("seq");
  const int64_t vocabulary = arguments.at("vocabulary");
  const AttentionSizes sizes = {.heads = arguments.at("heads"),
                                .head_size = arguments.at("head_size"),
                                .key_heads = arguments.at("key_heads"),
                                .biases = false,
                                .causal = true,
                                .norms = true};
  const RoutedSizes experts = {.experts = arguments.at("experts"),
                               .chosen = arguments.at("chosen"),
                               .intermediate = arguments.at("intermediate"),
                               .capacity_percent = arguments.at("capacity_percent"),
                               .groups = arguments.at("groups"),
                               .chosen_groups = arguments.at("chosen_groups")};
  const TensorRef ids = TokenIds(b, "input_ids", arguments.at("batch"), seq);
  TensorRef x = EmbeddedTokens(b, b.Weight("tokens.weight", {vocabulary, hidden}), ids, "tokens");
  const Rotation rotation = RotationTables(b, seq, sizes.head_size, kTheta);
  for (int64_t layer = 0; layer < arguments.at("layers"); ++layer) {
    const std::string name = absl::StrCat("layer", layer);
    TensorRef y = RmsNorm(b, x, name + "/attention/norm", kEpsilon);
    y = Attention(b, y, y, sizes, name + "/attention", &rotation);
    x = b.Add(x, y, name + "/attention/residual");
    y = RmsNorm(b, x, name + "/moe/norm", kEpsilon);
    y = RoutedExperts(b, y, experts, name + "/moe");
    x = b.Add(x, y, name + "/moe/residual");
  }
  b.Output("logits", UntiedLogits(b, RmsNorm(b, x, "norm", kEpsilon), vocabulary));
  return b.Build();
}

}  // namespace

ZooModel Qwen3Moe() {
  return {.name = "qwen3_moe",
          .description =
              "Qwen3-30B-A3B: each token uses eight of 128 experts; logits of each next token",
          .parameters = {ZooCount("layers", 48),
                         {.name = "hidden", .value = 2048},
                         {.name = "heads", .value = 32},
                         {.name = "key_heads", .value = 4},
                         {.name = "head_size", .value = 128, .smallest = 2},
                         {.name = "experts", .value = 128},
                         {.name = "chosen", .value = 8},
                         {.name = "groups", .value = 1},
                         {.name = "chosen_groups", .value = 1},
                         {.name = "intermediate", .value = 768},
                         {.name = "capacity_percent", .value = 125, .largest = 1000000},
                         {.name = "vocabulary", .value = 151936},
                         {.name = "seq", .value = 4096},
                         {.name = "batch", .value = 16}},
          .build = BuildQwen3Moe,
          .small =
              "layers=1&hidden=32&heads=16&key_heads=8&head_size=2&experts=16&chosen=4&"
              "intermediate=32&vocabulary=64&seq=4&batch=16",
          .source = "Yang et al., 2025 (Qwen3), table 2, and its published configuration",
          .published_parameters = 30532122624,
          .notes =
              "an expert takes 1.25 times its even share of a sequence, and drops what exceeds it, "
              "where Qwen3 drops nothing; no auxiliary loss"};
}

}  // namespace isomer
