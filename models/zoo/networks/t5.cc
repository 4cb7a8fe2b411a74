#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "models/zoo/blocks/transformer_blocks.h"
#include "models/zoo/models.h"

namespace isomer {
namespace {

constexpr double kEpsilonOfT5 = 1e-6;
constexpr int64_t kBuckets = 32, kFarthest = 128;

// The bucket of keys that lie `ahead` places after the query (Raffel et al., 2020, section 2.1):
// one for each near distance, then ever wider ones. Of both directions each has half.
int64_t BucketOf(int64_t ahead, bool causal) {
  const int64_t buckets = causal ? kBuckets : kBuckets / 2, near = buckets / 2;
  const int64_t first = !causal && ahead > 0 ? buckets : 0;
  const int64_t distance = causal ? std::max<int64_t>(-ahead, 0) : std::abs(ahead);
  if (distance < near) return first + distance;
  const double far = std::log(static_cast<double>(distance) / static_cast<double>(near)) /
                     std::log(static_cast<double>(kFarthest) / static_cast<double>(near));
  const auto wide = static_cast<int64_t>(far * static_cast<double>(buckets - near));
  return first + std::min(near + wide, buckets - 1);
}

// What each head adds to scores by how far keys are: [1, heads, seq, seq], of all layers.
TensorRef DistanceBias(ModelBuilder& b, int64_t seq, int64_t heads, bool causal,
                       const std::string& name) {
  std::vector<float> buckets;
  buckets.reserve(seq * seq);
  for (int64_t query = 0; query < seq; ++query) {
    for (int64_t key = 0; key < seq; ++key) {
      buckets.push_back(static_cast<float>(BucketOf(key - query, causal)));
    }
  }
  const TensorRef ids =
      b.Constant(name + "/buckets", {seq, seq}, std::move(buckets), DataType::kInt64);
  TensorRef bias = b.Call(OpKind::kEmbedding, {b.Weight(name + ".weight", {kBuckets, heads}), ids},
                          name + "/looked_up");
  bias = b.Transpose(bias, {2, 0, 1}, name + "/heads");
  return b.Reshape(bias, {1, heads, seq, seq}, name);
}

class T5Network {
 public:
  explicit T5Network(const ZooArguments& arguments)
      : arguments_(arguments),
        seq_(arguments.at("seq")),
        sizes_{.heads = arguments.at("heads"),
               .head_size = arguments.at("head_size"),
               .key_heads = arguments.at("heads"),
               .biases = false,
               .scale = 1},
        table_(b_.Weight("tokens.weight", {arguments.at("vocabulary"), arguments.at("hidden")})) {}

  absl::StatusOr<Model> Build() {
    if (seq_ > kLongest) {
      b_.Fail(absl::InvalidArgumentError(
          absl::StrCat("seq=", seq_, ": the table of distances is for at most ", kLongest)));
      return b_.Build();
    }
    const TensorRef memory = Stack("encoder", nullptr);
    TensorRef x = Stack("decoder", &memory);
    // Tied to the table, whose rows are larger than those of a weight would be.
    const double scale = 1 / std::sqrt(static_cast<double>(arguments_.at("hidden")));
    x = b_.Call({OpKind::kScale, {{"factor", scale}}}, {x}, "logits/scaled");
    b_.Output("logits", TiedLogits(b_, x, table_));
    return b_.Build();
  }

 private:
  static constexpr int64_t kLongest = 1024;

  // Of a decoder each layer sees the memory, too.
  TensorRef Stack(const std::string& name, const TensorRef* memory) {
    const bool causal = memory != nullptr;
    const TensorRef ids = TokenIds(b_, name + "_ids", arguments_.at("batch"), seq_);
    TensorRef x = EmbeddedTokens(b_, table_, ids, name + "/tokens");
    const TensorRef bias = DistanceBias(b_, seq_, sizes_.heads, causal, name + "/distance");
    AttentionSizes own = sizes_;
    own.causal = causal;
    for (int64_t layer = 0; layer < arguments_.at("layers"); ++layer) {
      const std::string at = absl::StrCat(name, "/layer", layer);
      TensorRef y = RmsNorm(b_, x, at + "/attention/norm", kEpsilonOfT5);
      y = Attention(b_, y, y, own, at + "/attention", nullptr, &bias);
      x = b_.Add(x, y, at + "/attention/residual");
      if (memory != nullptr) {
        y = RmsNorm(b_, x, at + "/cross/norm", kEpsilonOfT5);
        y = Attention(b_, y, *memory, sizes_, at + "/cross");
        x = b_.Add(x, y, at + "/cross/residual");
      }
      y = RmsNorm(b_, x, at + "/feed_forward/norm", kEpsilonOfT5);
      const int64_t hidden = b_.Size(y, -1);
      y = b_.Product(y, arguments_.at("intermediate"), at + "/feed_forward/in");
      y = b_.Product(b_.Relu(y, at + "/feed_forward"), hidden, at + "/feed_forward/out");
      x = b_.Add(x, y, at + "/feed_forward/residual");
    }
    return RmsNorm(b_, x, name + "/norm", kEpsilonOfT5);
  }

  const ZooArguments& arguments_;
  ModelBuilder b_;
  const int64_t seq_;
  const AttentionSizes sizes_;
  const TensorRef table_;
};

absl::StatusOr<Model> BuildT5(const ZooArguments& arguments) {
  return T5Network(arguments).Build();
}

}  // namespace

ZooModel T5() {
  return {.name = "t5",
          .description = "T5, an encoder and a decoder, by default T5-small; logits of each token",
          .parameters = {ZooCount("layers", 6),
                         {.name = "hidden", .value = 512},
                         {.name = "heads", .value = 8},
                         {.name = "head_size", .value = 64},
                         {.name = "intermediate", .value = 2048},
                         {.name = "vocabulary", .value = 32128},
                         {.name = "seq", .value = 512},
                         {.name = "batch", .value = 128}},
          .build = BuildT5,
          .small =
              "layers=1&hidden=32&heads=16&head_size=2&intermediate=32&vocabulary=64&seq=8&"
              "batch=16",
          .source = "Raffel et al., 2020, section 2.1 and 2.3 (small)",
          .published_parameters = 60506624,
          .notes =
              "no dropout; both sequences have one length; the table has 32,128 rows, as in the "
              "published weights; T5-large is "
              "`layers=24&hidden=1024&heads=16&intermediate=4096`"};
}

}  // namespace isomer
