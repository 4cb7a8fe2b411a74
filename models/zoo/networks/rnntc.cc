#include "models/zoo/blocks/recurrent_blocks.h"
#include "models/zoo/models.h"

namespace isomer {
namespace {

absl::StatusOr<Model> BuildRnntc(const ZooArguments& arguments) {
  ModelBuilder b;
  const std::vector<TensorRef> words =
      EmbeddedSteps(b, arguments.at("batch"), arguments.at("steps"), arguments.at("vocabulary"),
                    arguments.at("embedding"), "words");
  const std::vector<TensorRef> states =
      LstmStack(b, words, arguments.at("layers"), arguments.at("hidden"), "lstm");
  b.Output("logits", b.Dense(states.back(), arguments.at("classes"), "logits"));
  return b.Build();
}

}  // namespace

ZooModel Rnntc() {
  return {.name = "rnntc",
          .description = "recurrent text classifier: LSTM layers unrolled over 40 words; logits",
          .parameters = {{.name = "layers", .value = 4, .largest = 64},
                         {.name = "steps", .value = 40, .largest = 64},
                         {.name = "hidden", .value = 2048},
                         {.name = "embedding", .value = 2048},
                         {.name = "vocabulary", .value = 20480},
                         {.name = "classes", .value = 2},
                         {.name = "batch", .value = 256}},
          .build = BuildRnntc,
          .small = "layers=2&steps=2&hidden=16&embedding=16&vocabulary=32&classes=16&batch=16",
          .source =
              "FlexFlow, table 4 (4 recurrent layers, softmax, 40 steps); sizes of its code, "
              "nmt/nmt.cc",
          .notes = "FlexFlow does not give the widths; two classes, as in Movie Reviews"};
}

}  // namespace isomer
