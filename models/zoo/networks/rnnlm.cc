#include "models/zoo/blocks/recurrent_blocks.h"
#include "models/zoo/models.h"

namespace isomer {
namespace {

absl::StatusOr<Model> BuildRnnlm(const ZooArguments& arguments) {
  ModelBuilder b;
  const int64_t batch = arguments.at("batch"), steps = arguments.at("steps");
  const int64_t hidden = arguments.at("hidden"), vocabulary = arguments.at("vocabulary");
  const std::vector<TensorRef> words =
      EmbeddedSteps(b, batch, steps, vocabulary, arguments.at("embedding"), "words");
  const std::vector<TensorRef> states = LstmStack(b, words, arguments.at("layers"), hidden, "lstm");
  const TensorRef rows =
      b.Reshape(StackSteps(b, states, "states"), {batch * steps, hidden}, "rows");
  b.Output("logits", b.Dense(rows, vocabulary, "logits"));
  return b.Build();
}

}  // namespace

ZooModel Rnnlm() {
  return {.name = "rnnlm",
          .description =
              "recurrent language model: LSTM layers unrolled over 40 words; logits of "
              "each next word",
          .parameters = {{.name = "layers", .value = 2, .largest = 64},
                         {.name = "steps", .value = 40, .largest = 64},
                         {.name = "hidden", .value = 1500},
                         {.name = "embedding", .value = 1500},
                         {.name = "vocabulary", .value = 10000},
                         {.name = "batch", .value = 256}},
          .build = BuildRnnlm,
          .small = "steps=2&hidden=16&embedding=16&vocabulary=32&batch=16",
          .source =
              "FlexFlow, table 4 (2 recurrent layers, softmax, 40 steps; `steps=2` in section "
              "8.4); sizes of Zaremba et al., 2014, section 4.1, large, whose perplexity "
              "FlexFlow compares with",
          .notes = "published as 66 million; the softmax layer is one product over all steps"};
}

}  // namespace isomer
