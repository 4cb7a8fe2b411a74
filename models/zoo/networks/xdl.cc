#include "models/zoo/blocks/recommendation_blocks.h"
#include "models/zoo/models.h"

namespace isomer {
namespace {

// Every categorical feature through its table; the results side by side through dense layers.
absl::StatusOr<Model> BuildXdl(const ZooArguments& arguments) {
  ModelBuilder b;
  const std::vector<int64_t> widths(arguments.at("layers") - 1, arguments.at("hidden"));
  TensorRef x = ProductOfFeatures(b, EmbeddingTables(b, arguments), arguments.at("hidden"),
                                  arguments.at("apart") == 1, "joined", "dense/layer0");
  x = DenseLayers(b, b.Relu(x, "dense/layer0"), widths, "dense", 1);
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
                         ZooSwitch("look_ups", false),
                         ZooSwitch("apart", false),
                         ZooCount("layers", 2),
                         {.name = "hidden", .value = 256},
                         {.name = "batch", .value = 4096}},
          .build = BuildXdl,
          .small = "rows=64&features=16&hidden=32&batch=16",
          .source = "Jiang et al., 2019; Unity, table 1; sizes of FlexFlow's examples/cpp/XDL",
          .notes = "no biases, as in FlexFlow's code"};
}

}  // namespace isomer
