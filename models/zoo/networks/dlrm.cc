#include "models/zoo/blocks/recommendation_blocks.h"
#include "models/zoo/models.h"

namespace isomer {
namespace {

// Dense features go through the bottom layers, each categorical feature through its table; the
// results side by side through the top layers to one score, compared with a click rate by mse.
absl::StatusOr<Model> BuildDlrm(const ZooArguments& arguments) {
  const int64_t features = arguments.at("features"), top_hidden = arguments.at("top_hidden");
  const bool pairs = arguments.at("pairs") == 1, apart = arguments.at("apart") == 1;
  ModelBuilder b;
  if (pairs && apart) {
    b.Fail(absl::InvalidArgumentError("apart=1 is of a concatenation, which pairs=1 has not"));
  }
  std::vector<int64_t> bottom(arguments.at("bottom_layers"), arguments.at("bottom_hidden"));
  bottom.push_back(features);
  const TensorRef dense = b.Input("dense", {arguments.at("batch"), arguments.at("dense")});
  std::vector<TensorRef> parts = {DenseLayers(b, dense, bottom, "bottom", 0, pairs)};
  for (TensorRef table : EmbeddingTables(b, arguments)) parts.push_back(table);
  std::vector<int64_t> top(arguments.at("top_layers"), top_hidden);
  TensorRef x;
  if (pairs) {
    x = DenseLayers(b, PairsOfFeatures(b, parts, "pairs"), top, "top", 0, true);
    x = b.Dense(x, 1, "top/score");
  } else {
    top.pop_back();
    x = ProductOfFeatures(b, std::move(parts), top_hidden, apart, "interaction", "top/layer0");
    x = DenseLayers(b, b.Relu(x, "top/layer0"), top, "top", 1);
    x = b.Product(x, 1, "top/score");
  }
  b.Output("score", b.Call(OpKind::kSigmoid, {x}, "score"));
  return b.Build();
}

}  // namespace

ZooModel Dlrm() {
  return {
      .name = "dlrm",
      .description = "deep learning recommendation model, interaction by concatenation; a score",
      .parameters = {{.name = "tables", .value = 8, .largest = 63},
                     {.name = "rows", .value = 1000000},
                     {.name = "features", .value = 64},
                     {.name = "bag", .value = 1},
                     ZooSwitch("look_ups", false),
                     ZooSwitch("apart", false),
                     ZooSwitch("pairs", false),
                     {.name = "dense", .value = 64},
                     ZooCount("bottom_layers", 2),
                     {.name = "bottom_hidden", .value = 512},
                     ZooCount("top_layers", 3),
                     {.name = "top_hidden", .value = 1024},
                     {.name = "batch", .value = 4096}},
      .build = BuildDlrm,
      .small = "tables=4&rows=64&features=16&dense=16&bottom_hidden=32&top_hidden=32&batch=16",
      .source =
          "Naumov et al., 2019; Unity, table 1; sizes of FlexFlow's examples/cpp/DLRM/"
          "run_summit.sh (8 tables, 64-512-512-64, 576-1024-1024-1024-1)",
      .notes =
          "no biases, and no pairwise dot products, as in FlexFlow's code; `pairs=1` has"
          " both, as in its authors'"};
}

}  // namespace isomer
