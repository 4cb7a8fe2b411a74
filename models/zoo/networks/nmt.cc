#include "models/zoo/blocks/recurrent_blocks.h"
#include "models/zoo/models.h"

namespace isomer {
namespace {

// [tanh(concat(context, s)) for every decoder state s], where the context is the sum of encoder
// states weighted by softmax(s W h) (Luong et al., 2015, "general").
TensorRef Attend(ModelBuilder& b, TensorRef decoder, TensorRef encoder, int64_t hidden) {
  const TensorRef query = b.Product(decoder, hidden, "attention/query");
  const TensorRef keys = b.Transpose(encoder, {0, 2, 1}, "attention/keys");
  const TensorRef scores = b.Call(OpKind::kMatMul, {query, keys}, "attention/scores");
  const TensorRef weights =
      b.Call({OpKind::kSoftmax, {{"axis", int64_t{-1}}}}, {scores}, "attention/weights");
  const TensorRef context = b.Call(OpKind::kMatMul, {weights, encoder}, "attention/context");
  const TensorRef joined = b.Concat({context, decoder}, 2, "attention/joined");
  return b.Call(OpKind::kTanh, {b.Product(joined, hidden, "attention/combined")}, "attention");
}

absl::StatusOr<Model> BuildNmt(const ZooArguments& arguments) {
  ModelBuilder b;
  const int64_t batch = arguments.at("batch"), steps = arguments.at("steps");
  const int64_t layers = arguments.at("layers"), hidden = arguments.at("hidden");
  const int64_t vocabulary = arguments.at("vocabulary"), embedding = arguments.at("embedding");
  std::vector<LstmState> states;
  const std::vector<TensorRef> encoder =
      LstmStack(b, EmbeddedSteps(b, batch, steps, vocabulary, embedding, "source"), layers, hidden,
                "encoder", &states);
  const std::vector<TensorRef> decoder =
      LstmStack(b, EmbeddedSteps(b, batch, steps, vocabulary, embedding, "target_so_far"), layers,
                hidden, "decoder", &states);
  const TensorRef attended = Attend(b, StackSteps(b, decoder, "decoder/states"),
                                    StackSteps(b, encoder, "encoder/states"), hidden);
  const TensorRef rows = b.Reshape(attended, {batch * steps, hidden}, "rows");
  b.Output("logits", b.Dense(rows, vocabulary, "logits"));
  return b.Build();
}

}  // namespace

ZooModel Nmt() {
  return {.name = "nmt",
          .description =
              "recurrent translation with attention: encoder and decoder unrolled over 40 "
              "words; logits of each next word",
          .parameters = {{.name = "layers", .value = 2, .largest = 64},
                         {.name = "steps", .value = 40, .largest = 64},
                         {.name = "hidden", .value = 2048},
                         {.name = "embedding", .value = 2048},
                         {.name = "vocabulary", .value = 20480},
                         {.name = "batch", .value = 256}},
          .build = BuildNmt,
          .small = "steps=2&layers=1&hidden=16&embedding=16&vocabulary=32&batch=16",
          .source =
              "FlexFlow, table 4 and figure 13 (4 recurrent layers, attention, softmax, 40 "
              "steps); sizes of its code, nmt/nmt.cc",
          .notes =
              "2 encoder and 2 decoder layers; attention after the last decoder layer, with "
              "products (Luong et al., 2015) instead of sums; softmax layer over all steps"};
}

}  // namespace isomer
