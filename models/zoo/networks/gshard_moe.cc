#include "absl/strings/str_cat.h"
#include "models/zoo/blocks/expert_blocks.h"
#include "models/zoo/blocks/transformer_blocks.h"
#include "models/zoo/models.h"

namespace isomer {
namespace {

// An encoder and a decoder of half of the layers each, norms after each sum, as in figure 3.
class GshardMoeNetwork {
 public:
  explicit GshardMoeNetwork(const ZooArguments& arguments)
      : arguments_(arguments),
        batch_(arguments.at("batch")),
        hidden_(arguments.at("hidden")),
        experts_(b_, {.experts = arguments.at("experts"),
                      .intermediate = arguments.at("intermediate"),
                      .capacity_percent = arguments.at("capacity_percent")}) {}

  absl::StatusOr<Model> Build() {
    constexpr double kAuxiliaryWeight = 0.01;
    if (arguments_.at("layers") % 4 != 0) {
      b_.Fail(absl::InvalidArgumentError(absl::StrCat("layers=", arguments_.at("layers"),
                                                      " do not divide into two stacks of pairs")));
    }
    const int64_t half = arguments_.at("layers") / 2;
    const TensorRef table = b_.Weight("tokens.weight", {arguments_.at("vocabulary"), hidden_});
    TensorRef source = Embedded(table, "source");
    for (int64_t i = 0; i < half; ++i) {
      source = Layer(source, nullptr, i % 2 == 1, absl::StrCat("encoder", i));
    }
    TensorRef target = Embedded(table, "target");
    for (int64_t i = 0; i < half; ++i) {
      target = Layer(target, &source, i % 2 == 1, absl::StrCat("decoder", i));
    }
    const TensorRef logits = TiedLogits(b_, target, table);
    b_.Output("logits", logits);
    if (arguments_.at("aux") == 1) experts_.AddLoss(logits, batch_, kAuxiliaryWeight);
    return b_.Build();
  }

 private:
  TensorRef Embedded(TensorRef table, const std::string& name) {
    const TensorRef ids = TokenIds(b_, name + "_ids", batch_, arguments_.at("seq"));
    return AddPositions(b_, EmbeddedTokens(b_, table, ids, name), name + "/positions");
  }

  TensorRef AttentionNorm(TensorRef x, TensorRef memory, bool causal, const std::string& name) {
    const int64_t heads = arguments_.at("heads");
    const AttentionSizes sizes = {.heads = heads,
                                  .head_size = arguments_.at("head_size"),
                                  .key_heads = heads,
                                  .biases = false,
                                  .causal = causal};
    return LayerNorm(b_, b_.Add(x, Attention(b_, x, memory, sizes, name), name + "/residual"),
                     name + "/norm");
  }

  // Of the decoder if there is an `encoded`.
  TensorRef Layer(TensorRef x, const TensorRef* encoded, bool is_mixture, const std::string& name) {
    x = AttentionNorm(x, x, encoded != nullptr, name + "/attention");
    if (encoded != nullptr) x = AttentionNorm(x, *encoded, false, name + "/cross_attention");
    const TensorRef y = is_mixture ? experts_.Layer(x, name + "/moe")
                                   : FeedForward(b_, x, arguments_.at("intermediate"),
                                                 OpKind::kRelu, name + "/feed_forward");
    return LayerNorm(b_, b_.Add(x, y, name + "/feed_forward/residual"),
                     name + "/feed_forward/norm");
  }

  const ZooArguments& arguments_;
  const int64_t batch_, hidden_;
  ModelBuilder b_;
  ExpertLayers experts_;
};

absl::StatusOr<Model> BuildGshardMoe(const ZooArguments& arguments) {
  return GshardMoeNetwork(arguments).Build();
}

}  // namespace

ZooModel GshardMoe() {
  return {
      .name = "gshard_moe",
      .description =
          "multilingual translation by a transformer of which every other layer is a mixture of "
          "2048 experts; logits and loss",
      .parameters = {{.name = "experts", .value = 2048, .smallest = 2},
                     {.name = "layers", .value = 36, .smallest = 4, .largest = 4096},
                     {.name = "hidden", .value = 1024},
                     {.name = "intermediate", .value = 8192},
                     {.name = "heads", .value = 16},
                     {.name = "head_size", .value = 128},
                     {.name = "capacity_percent", .value = 100, .largest = 1000000},
                     {.name = "vocabulary", .value = 64000},
                     {.name = "seq", .value = 1024},
                     ZooSwitch("aux", true),
                     {.name = "batch", .value = 16}},
      .build = BuildGshardMoe,
      .small =
          "experts=16&layers=4&hidden=16&intermediate=16&heads=16&head_size=2&vocabulary=32&"
          "seq=4&batch=16",
      .source = "Lepikhin et al., 2021, table 1 and algorithms 1 and 2, MoE(2048E, 36L)",
      .notes =
          "published as 600 billion, which are 18 layers of encoder and 18 of decoder with 18 "
          "mixtures of 34.4 billion (`layers` is their sum); a group of tokens is a sequence, "
          "positions are learned, no dropout; MoE(512E, 12L) is `experts=512&layers=12`"};
}

}  // namespace isomer
