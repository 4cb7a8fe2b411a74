#include "models/zoo/blocks/recommendation_blocks.h"
#include "models/zoo/models.h"

namespace isomer {
namespace {

// Features of a cell and of two drugs go each through a tower of dense layers; the results, beside
// the two doses, through dense layers to the growth of the cell.
absl::StatusOr<Model> BuildCandleUno(const ZooArguments& arguments) {
  ModelBuilder b;
  const std::vector<int64_t> tower(arguments.at("feature_layers"), arguments.at("hidden"));
  const std::vector<int64_t> top(arguments.at("layers"), arguments.at("hidden"));
  std::vector<TensorRef> parts;
  for (const char* name : {"dose1", "dose2"}) {
    parts.push_back(b.Input(name, {arguments.at("batch"), 1}));
  }
  const std::pair<std::string, std::string> features[] = {{"cell_rnaseq", "rnaseq"},
                                                          {"drug1_descriptors", "descriptors"},
                                                          {"drug1_fingerprints", "fingerprints"},
                                                          {"drug2_descriptors", "descriptors"},
                                                          {"drug2_fingerprints", "fingerprints"}};
  for (const auto& [name, size] : features) {
    const TensorRef x = b.Input(name, {arguments.at("batch"), arguments.at(size)});
    parts.push_back(DenseLayers(b, x, tower, name));
  }
  const TensorRef x = DenseLayers(b, b.Concat(std::move(parts), 1, "joined"), top, "dense");
  b.Output("growth", b.Product(x, 1, "growth"));
  return b.Build();
}

}  // namespace

ZooModel CandleUno() {
  return {.name = "candle_uno",
          .description = "tumour dose response from features of a cell and two drugs; the growth",
          .parameters = {ZooCount("feature_layers", 8),
                         ZooCount("layers", 4),
                         {.name = "hidden", .value = 4192},
                         {.name = "rnaseq", .value = 942},
                         {.name = "descriptors", .value = 5270},
                         {.name = "fingerprints", .value = 2048},
                         {.name = "batch", .value = 1024}},
          .build = BuildCandleUno,
          .small =
              "feature_layers=2&layers=2&hidden=16&rnaseq=32&descriptors=32&fingerprints=32&"
              "batch=16",
          .source =
              "CANDLE Uno benchmark; Unity, table 1; sizes of FlexFlow's "
              "examples/cpp/candle_uno",
          .notes = "each drug has towers of its own and no layer a bias, as in FlexFlow's code"};
}

}  // namespace isomer
