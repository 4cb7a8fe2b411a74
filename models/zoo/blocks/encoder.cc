#include "models/zoo/blocks/encoder.h"

#include <cmath>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "models/zoo/blocks/model_builder.h"
#include "models/zoo/blocks/transformer_blocks.h"

namespace isomer {
namespace {

// What PyTorch uses unless told otherwise, as the float32 that ONNX files hold.
constexpr double kLayerNormEpsilon = 1e-5f;

// A post-LN transformer encoder (Vaswani et al., 2017; Devlin et al., 2019), without dropout and
// mask: node by node what bert_tiny.onnx imports to, at any size.
class EncoderBuilder {
 public:
  explicit EncoderBuilder(const ZooArguments& arguments)
      : layers_(arguments.at("layers")),
        hidden_(arguments.at("hidden")),
        heads_(arguments.at("heads")),
        intermediate_(arguments.at("intermediate")),
        vocabulary_(arguments.at("vocabulary")),
        segments_(arguments.at("segments")),
        sequence_(arguments.at("seq")),
        pooler_(arguments.at("pooler") == 1),
        language_(arguments.at("language") == 1),
        batch_(arguments.at("batch")) {}

  absl::StatusOr<Model> Build() {
    if (hidden_ % heads_ != 0) {
      b_.Fail(absl::InvalidArgumentError(
          absl::StrCat("hidden=", hidden_, " does not divide into heads=", heads_)));
    }
    if (language_ && vocabulary_ == 0) {
      b_.Fail(absl::InvalidArgumentError("language=1 needs a vocabulary"));
    }
    TensorRef x = Embedding();
    for (int64_t layer = 0; layer < layers_; ++layer) x = Layer(x, absl::StrCat("layer", layer));
    b_.Output(language_ ? "logits" : "encoded", language_ ? Logits(x) : x);
    if (pooler_) b_.Output("pooled", Pool(x));
    return b_.Build();
  }

 private:
  TensorRef Norm(TensorRef x, const std::string& name) {
    const TensorRef weight = b_.Weight(name + ".weight", {hidden_});
    const TensorRef bias = b_.Weight(name + ".bias", {hidden_});
    return b_.Call({OpKind::kLayerNorm, {{"epsilon", kLayerNormEpsilon}}}, {x, weight, bias}, name);
  }

  // Without a vocabulary the embedded tokens are the input.
  TensorRef Embedding() {
    if (vocabulary_ == 0) return b_.Input("embedded", {batch_, sequence_, hidden_});
    const TensorRef ids = b_.Input("input_ids", {batch_, sequence_}, DataType::kInt64);
    table_ = b_.Weight("embedding/tokens.weight", {vocabulary_, hidden_});
    const TensorRef tokens = b_.Call(OpKind::kEmbedding, {table_, ids}, "embedding/tokens");
    const TensorRef positions = b_.Weight("embedding/positions.weight", {1, sequence_, hidden_});
    TensorRef sum = b_.Add(tokens, positions, "embedding/sum");
    if (segments_ > 0) {
      const TensorRef segment_ids = b_.Input("segment_ids", {batch_, sequence_}, DataType::kInt64);
      const TensorRef segments = b_.Weight("embedding/segments.weight", {segments_, hidden_});
      sum = b_.Add(sum, b_.Call(OpKind::kEmbedding, {segments, segment_ids}, "embedding/segments"),
                   "embedding/segmented");
    }
    return Norm(sum, "embedding/norm");
  }

  // Of the word at each place [batch * sequence, vocabulary]: a layer, and products with the rows
  // of the embedding table.
  TensorRef Logits(TensorRef x) {
    x = b_.Linear(x, hidden_, hidden_, "language/transform");
    x = Norm(b_.Call(OpKind::kGelu, {x}, "language/gelu"), "language/norm");
    return b_.Add(TiedLogits(b_, x, table_), b_.Weight("language/bias", {vocabulary_}),
                  "logits/biased");
  }

  // A dense layer on the first token.
  TensorRef Pool(TensorRef x) {
    if (sequence_ > 1) {
      const std::vector<Extent> sizes = {Extent(1), Extent(sequence_ - 1)};
      x = b_.CallAll({OpKind::kSplit, {{"axis", int64_t{1}}, {"sizes", sizes}}}, {x}, 2,
                     "pooler/first")[0];
    }
    x = b_.Reshape(x, {batch_, hidden_}, "pooler/row");
    return b_.Call(OpKind::kTanh, {b_.Dense(x, hidden_, "pooler")}, "pooler/tanh");
  }

  // [batch, sequence, hidden] -> [batch, sequence, heads, head size], permuted by `perm`.
  TensorRef SplitHeads(TensorRef x, std::vector<int64_t> perm, const std::string& name) {
    x = b_.Reshape(x, {batch_, sequence_, heads_, hidden_ / heads_}, name + "/split");
    return b_.Transpose(x, std::move(perm), name + "/heads");
  }

  TensorRef Attention(TensorRef x, const std::string& name) {
    const TensorRef q =
        SplitHeads(b_.Linear(x, hidden_, hidden_, name + "/query"), {0, 2, 1, 3}, name + "/query");
    // The heads and the transpose of the keys in one, as the exporter writes it.
    const TensorRef k =
        SplitHeads(b_.Linear(x, hidden_, hidden_, name + "/key"), {0, 2, 3, 1}, name + "/key");
    const TensorRef v =
        SplitHeads(b_.Linear(x, hidden_, hidden_, name + "/value"), {0, 2, 1, 3}, name + "/value");
    const double factor = 1 / std::sqrt(static_cast<double>(hidden_ / heads_));
    const TensorRef scores =
        b_.Call({OpKind::kScale, {{"factor", factor}}},
                {b_.Call(OpKind::kMatMul, {q, k}, name + "/scores")}, name + "/scaled_scores");
    const TensorRef probabilities =
        b_.Call({OpKind::kSoftmax, {{"axis", int64_t{-1}}}}, {scores}, name + "/probabilities");
    TensorRef context = b_.Call(OpKind::kMatMul, {probabilities, v}, name + "/context");
    context = b_.Transpose(context, {0, 2, 1, 3}, name + "/context/rows");
    context = b_.Reshape(context, {batch_, sequence_, hidden_}, name + "/context/merged");
    return b_.Linear(context, hidden_, hidden_, name + "/output");
  }

  TensorRef FeedForward(TensorRef x, const std::string& name) {
    x = b_.Linear(x, hidden_, intermediate_, name + "/intermediate");
    x = b_.Call(OpKind::kGelu, {x}, name + "/gelu");
    return b_.Linear(x, intermediate_, hidden_, name + "/output");
  }

  TensorRef Layer(TensorRef x, const std::string& name) {
    const TensorRef attention = Attention(x, name + "/attention");
    x = Norm(b_.Call(OpKind::kAdd, {x, attention}, name + "/attention/residual"),
             name + "/attention/norm");
    const TensorRef feed_forward = FeedForward(x, name + "/feed_forward");
    return Norm(b_.Call(OpKind::kAdd, {x, feed_forward}, name + "/feed_forward/residual"),
                name + "/feed_forward/norm");
  }

  const int64_t layers_, hidden_, heads_, intermediate_, vocabulary_, segments_, sequence_;
  const bool pooler_, language_;
  const int64_t batch_;
  ModelBuilder b_;
  TensorRef table_;
};

}  // namespace

std::vector<ZooParameter> EncoderParameters(const EncoderSizes& sizes) {
  return {ZooCount("layers", sizes.layers),
          {.name = "hidden", .value = sizes.hidden},
          {.name = "heads", .value = sizes.heads},
          {.name = "intermediate", .value = sizes.intermediate},
          {.name = "vocabulary", .value = sizes.vocabulary, .smallest = 0},
          {.name = "segments", .value = 0, .smallest = 0},
          {.name = "seq", .value = sizes.sequence},
          ZooSwitch("pooler", false),
          ZooSwitch("language", false),
          {.name = "batch", .value = sizes.batch}};
}

absl::StatusOr<Model> BuildEncoder(const ZooArguments& arguments) {
  return EncoderBuilder(arguments).Build();
}

}  // namespace isomer
