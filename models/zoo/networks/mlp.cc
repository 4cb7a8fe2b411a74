#include "absl/strings/str_cat.h"
#include "models/zoo/blocks/model_builder.h"
#include "models/zoo/models.h"

namespace isomer {
namespace {

// Dense layers, each but the last with Relu.
TensorRef Tower(ModelBuilder& b, TensorRef x, const ZooArguments& arguments,
                const std::string& prefix) {
  for (int64_t layer = 0; layer + 1 < arguments.at("layers"); ++layer) {
    const std::string name = absl::StrCat(prefix, "layer", layer);
    x = b.Dense(x, arguments.at("hidden"), absl::StrCat(name, "/dense"));
    x = b.Relu(x, name);
  }
  return b.Dense(x, arguments.at("classes"), absl::StrCat(prefix, "classifier"));
}

absl::StatusOr<Model> BuildMlp(const ZooArguments& arguments) {
  ModelBuilder b;
  const int64_t towers = arguments.at("towers");
  TensorRef sum;
  for (int64_t tower = 0; tower < towers; ++tower) {
    const std::string prefix = towers == 1 ? "" : absl::StrCat("tower", tower, "/");
    const TensorRef features =
        b.Input(prefix + "features", {arguments.at("batch"), arguments.at("inputs")});
    const TensorRef logits = Tower(b, features, arguments, prefix);
    sum = tower == 0 ? logits : b.Add(sum, logits, absl::StrCat("sum", tower));
  }
  b.Output("logits", sum);
  return b.Build();
}

}  // namespace

ZooModel Mlp() {
  return {
      .name = "mlp",
      .description = "dense layers, Relu between them, on rows of features; logits",
      .parameters = {ZooCount("layers", 16),
                     {.name = "inputs", .value = 1024},
                     {.name = "hidden", .value = 8192},
                     {.name = "classes", .value = 8192},
                     {.name = "towers", .value = 1, .largest = 64},
                     {.name = "batch", .value = 1024}},
      .build = BuildMlp,
      .small = "layers=3&inputs=16&hidden=32&classes=16&batch=16",
      .source = "Unity, table 1 and section 7.1 (16 dense layers, hidden 8192)",
      .notes = "one chain of layers, with biases; Unity's code is `towers=2&layers=8`, without"};
}

}  // namespace isomer
