#include "models/zoo/models.h"
#include "models/zoo/recommendation_blocks.h"

namespace isomer {
namespace {

// Every categorical feature through its table; the results side by side through dense layers.
absl::StatusOr<Model> Build(const ZooArguments& arguments) {
  ModelBuilder b;
  const TensorRef joined = b.Concat(EmbeddingTables(b, arguments), 1, "joined");
  const std::vector<int64_t> widths(arguments.at("layers"), arguments.at("hidden"));
  const TensorRef x = DenseLayers(b, joined, widths, "dense");
  b.Output("score", b.Call(OpKind::kSigmoid, {b.Product(x, 2, "dense/score")}, "score"));
  return b.Build();
}

}  // namespace

ZooModel Xdl() {
  return {.name = "xdl",
          .description = "click prediction from embedded categorical features; two scores",
          .parameters = {{.name = "tables", .value = 4, .largest = 63},
                         {.name = "rows", .value = 1000000},
                         {.name = "features", .value = 64},
                         {.name = "bag", .value = 1},
                         ZooCount("layers", 2),
                         {.name = "hidden", .value = 256},
                         {.name = "batch", .value = 4096}},
          .build = Build,
          .small = "rows=64&features=16&hidden=32&batch=16",
          .source = "Jiang et al., 2019; Unity, table 1; sizes of FlexFlow's examples/cpp/XDL",
          .notes = "no biases, as in FlexFlow's code"};
}

}  // namespace isomer
