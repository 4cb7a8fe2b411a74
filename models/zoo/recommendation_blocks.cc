#include "models/zoo/recommendation_blocks.h"

#include "absl/strings/str_cat.h"

namespace isomer {

TensorRef DenseLayers(ModelBuilder& b, TensorRef x, const std::vector<int64_t>& widths,
                      const std::string& name) {
  for (size_t layer = 0; layer < widths.size(); ++layer) {
    const std::string layer_name = absl::StrCat(name, "/layer", layer);
    x = b.Relu(b.Product(x, widths[layer], layer_name), layer_name);
  }
  return x;
}

std::vector<TensorRef> EmbeddingTables(ModelBuilder& b, const ZooArguments& arguments) {
  const int64_t batch = arguments.at("batch"), bag = arguments.at("bag");
  std::vector<TensorRef> results;
  for (int64_t t = 0; t < arguments.at("tables"); ++t) {
    const std::string name = absl::StrCat("table", t);
    const TensorRef table =
        b.Weight(name + ".weight", {arguments.at("rows"), arguments.at("features")});
    const std::vector<int64_t> shape =
        bag == 1 ? std::vector<int64_t>{batch} : std::vector<int64_t>{batch, bag};
    const TensorRef ids = b.Input(name + "_ids", shape, DataType::kInt64);
    results.push_back(
        b.Call(bag == 1 ? OpKind::kEmbedding : OpKind::kEmbeddingBag, {table, ids}, name));
  }
  return results;
}

}  // namespace isomer
