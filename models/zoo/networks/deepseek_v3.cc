#include <cmath>

#include "absl/strings/str_cat.h"
#include "models/zoo/blocks/expert_blocks.h"
#include "models/zoo/blocks/transformer_blocks.h"
#include "models/zoo/models.h"

namespace isomer {
namespace {

constexpr double kThetaOfDeepSeek = 10000, kEpsilonOfDeepSeek = 1e-6;

struct LatentSizes {
  int64_t heads, query_rank, key_rank;  // ranks: sizes of what queries, keys and values come from
  int64_t plain, rotated, value;        // parts of a head
};

// Multi-head latent attention (DeepSeek-AI, 2024, section 2.1.1): queries of each head from a
// normalised projection of x, keys and values from another, beside one rotated key of all heads.
TensorRef LatentAttention(ModelBuilder& b, TensorRef x, const LatentSizes& sizes,
                          const Rotation& rotation, const std::string& name) {
  const auto norm = [&](TensorRef of, const std::string& as) {
    return RmsNorm(b, of, as, kEpsilonOfDeepSeek);
  };
  const auto parts = [&](TensorRef of, int64_t first, int64_t second, const std::string& as) {
    return b.CallAll(
        {OpKind::kSplit, {{"axis", int64_t{-1}}, {"sizes", std::vector<int64_t>{first, second}}}},
        {of}, 2, as);
  };
  const auto rotate = [&](TensorRef of, const std::string& as) {
    return b.Call({OpKind::kRotary, {{"interleaved", int64_t{1}}}},
                  {of, rotation.cos, rotation.sin}, as);
  };
  const int64_t batch = b.Size(x, 0), length = b.Size(x, 1);
  const TensorRef of_queries =
      norm(b.Product(x, sizes.query_rank, name + "/query/down"), name + "/query/norm");
  const std::vector<TensorRef> query =
      parts(ProjectedHeads(b, of_queries, sizes.heads, sizes.plain + sizes.rotated, false,
                           name + "/query"),
            sizes.plain, sizes.rotated, name + "/query/parts");
  const std::vector<TensorRef> latent =
      parts(b.Product(x, sizes.key_rank + sizes.rotated, name + "/key/down"), sizes.key_rank,
            sizes.rotated, name + "/key/down/parts");
  const std::vector<TensorRef> key_and_value =
      parts(ProjectedHeads(b, norm(latent[0], name + "/key/norm"), sizes.heads,
                           sizes.plain + sizes.value, false, name + "/key"),
            sizes.plain, sizes.value, name + "/key/parts");
  TensorRef shared = b.Reshape(latent[1], {batch, 1, length, sizes.rotated}, name + "/key/shared");
  shared = b.Call({OpKind::kExpand,
                   {{"shape", std::vector<int64_t>{batch, sizes.heads, length, sizes.rotated}}}},
                  {rotate(shared, name + "/key/rotated")}, name + "/key/of_heads");
  const TensorRef q =
      b.Concat({query[0], rotate(query[1], name + "/query/rotated")}, -1, name + "/query/whole");
  const TensorRef k = b.Concat({key_and_value[0], shared}, -1, name + "/key/whole");
  const double scale = 1 / std::sqrt(static_cast<double>(sizes.plain + sizes.rotated));
  const TensorRef context = b.Call({OpKind::kAttention, {{"causal", int64_t{1}}, {"scale", scale}}},
                                   {q, k, key_and_value[1]}, name + "/context");
  return b.Product(MergeHeads(b, context, name + "/context"), b.Size(x, -1), name + "/output");
}

absl::StatusOr<Model> BuildDeepSeekV3(const ZooArguments& arguments) {
  constexpr double kRoutedScale = 2.5;
  ModelBuilder b;
  const int64_t hidden = arguments.at("hidden"), seq = arguments.at("seq");
  const int64_t vocabulary = arguments.at("vocabulary");
  const LatentSizes sizes = {.heads = arguments.at("heads"),
                             .query_rank = arguments.at("query_rank"),
                             .key_rank = arguments.at("key_rank"),
                             .plain = arguments.at("plain"),
                             .rotated = arguments.at("rotated"),
                             .value = arguments.at("value")};
  const RoutedSizes experts = {.experts = arguments.at("experts"),
                               .chosen = arguments.at("chosen"),
                               .intermediate = arguments.at("intermediate"),
                               .capacity_percent = arguments.at("capacity_percent"),
                               .scores = RoutedSizes::Scores::kSigmoid,
                               .biased_choice = arguments.at("groups") == 1,
                               .groups = arguments.at("groups"),
                               .chosen_groups = arguments.at("chosen_groups"),
                               .scale = kRoutedScale,
                               .shared = arguments.at("shared")};
  const TensorRef ids = TokenIds(b, "input_ids", arguments.at("batch"), seq);
  TensorRef x = EmbeddedTokens(b, b.Weight("tokens.weight", {vocabulary, hidden}), ids, "tokens");
  const Rotation rotation = RotationTables(b, seq, sizes.rotated, kThetaOfDeepSeek);
  for (int64_t layer = 0; layer < arguments.at("layers"); ++layer) {
    const std::string name = absl::StrCat("layer", layer);
    TensorRef y = RmsNorm(b, x, name + "/attention/norm", kEpsilonOfDeepSeek);
    y = LatentAttention(b, y, sizes, rotation, name + "/attention");
    x = b.Add(x, y, name + "/attention/residual");
    y = RmsNorm(b, x, name + "/feed_forward/norm", kEpsilonOfDeepSeek);
    y = layer < arguments.at("dense_layers")
            ? GatedFeedForward(b, y, arguments.at("dense_intermediate"), name + "/feed_forward")
            : RoutedExperts(b, y, experts, name + "/moe");
    x = b.Add(x, y, name + "/feed_forward/residual");
  }
  x = RmsNorm(b, x, "norm", kEpsilonOfDeepSeek);
  b.Output("logits", UntiedLogits(b, x, vocabulary));
  return b.Build();
}

}  // namespace

ZooModel DeepSeekV3() {
  return {
      .name = "deepseek_v3",
      .description =
          "DeepSeek-V3: latent attention; each token uses eight of 256 experts and a shared one; "
          "logits of each next token",
      .parameters = {ZooCount("layers", 61),
                     {.name = "dense_layers", .value = 3, .smallest = 0},
                     {.name = "hidden", .value = 7168},
                     {.name = "heads", .value = 128},
                     {.name = "query_rank", .value = 1536},
                     {.name = "key_rank", .value = 512},
                     {.name = "plain", .value = 128},
                     {.name = "rotated", .value = 64, .smallest = 2},
                     {.name = "value", .value = 128},
                     {.name = "dense_intermediate", .value = 18432},
                     {.name = "experts", .value = 256},
                     {.name = "chosen", .value = 8},
                     {.name = "groups", .value = 1},
                     {.name = "chosen_groups", .value = 1},
                     {.name = "shared", .value = 1, .smallest = 0},
                     {.name = "intermediate", .value = 2048},
                     {.name = "capacity_percent", .value = 125, .largest = 1000000},
                     {.name = "vocabulary", .value = 129280},
                     {.name = "seq", .value = 4096},
                     {.name = "batch", .value = 16}},
      .build = BuildDeepSeekV3,
      .small =
          "layers=2&dense_layers=1&hidden=32&heads=16&query_rank=16&key_rank=16&plain=4&rotated=2&"
          "value=4&dense_intermediate=32&experts=16&chosen=4&intermediate=32&vocabulary=64&seq=4&"
          "batch=16",
      .source = "DeepSeek-AI, 2024 (DeepSeek-V3), section 4.2, and its published configuration",
      .published_parameters = 671026419200,
      .notes =
          "without the layer that predicts a second token; a token chooses among all experts, or, "
          "with groups=8&chosen_groups=4, two in each of four of eight groups, without a bias, "
          "where "
          "DeepSeek's takes the eight best of the four; an expert takes 1.25 times its even share "
          "of a "
          "sequence, and drops what exceeds it; the bias of the choice, counted, gets no gradient, "
          "and DeepSeek's rule that moves it is not part of the graph; no balance loss; the "
          "rotation is that of sequences up to 4096, without scaling"};
}

}  // namespace isomer
