#include "models/zoo/blocks/recommendation_blocks.h"

#include "absl/strings/str_cat.h"

namespace isomer {

TensorRef DenseLayers(ModelBuilder& b, TensorRef x, const std::vector<int64_t>& widths,
                      const std::string& name, int first, bool biases) {
  for (size_t layer = 0; layer < widths.size(); ++layer) {
    const std::string layer_name = absl::StrCat(name, "/layer", first + layer);
    const int64_t width = widths[layer];
    x = biases ? b.Dense(x, width, layer_name) : b.Product(x, width, layer_name);
    x = b.Relu(x, layer_name);
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
    if (bag > 1 && arguments.at("look_ups") == 1) {
      const TensorRef rows = b.Call(OpKind::kEmbedding, {table, ids}, name + "/look_ups");
      const Operator sum = {OpKind::kReduceSum,
                            {{"axes", std::vector<int64_t>{1}}, {"keepdims", int64_t{0}}}};
      results.push_back(b.Call(sum, {rows}, name));
      continue;
    }
    results.push_back(
        b.Call(bag == 1 ? OpKind::kEmbedding : OpKind::kEmbeddingBag, {table, ids}, name));
  }
  return results;
}

TensorRef PairsOfFeatures(ModelBuilder& b, const std::vector<TensorRef>& parts,
                          const std::string& name) {
  const int64_t count = static_cast<int64_t>(parts.size()), batch = b.Size(parts[0], 0),
                width = b.Size(parts[0], 1);
  const TensorRef rows =
      b.Reshape(b.Concat(parts, 1, name + "/parts"), {batch, count, width}, name + "/rows");
  TensorRef products = b.Call(
      OpKind::kMatMul, {rows, b.Transpose(rows, {0, 2, 1}, name + "/columns")}, name + "/products");
  products = b.Reshape(products, {batch, count * count}, name + "/all");
  std::vector<float> above;
  for (int64_t i = 0; i < count; ++i) {
    for (int64_t j = i + 1; j < count; ++j) above.push_back(static_cast<float>(i * count + j));
  }
  const int64_t pairs = static_cast<int64_t>(above.size());
  const TensorRef places = b.Constant(name + "/above", {pairs}, std::move(above), DataType::kInt64);
  products = b.Call({OpKind::kGather, {{"axis", int64_t{1}}}}, {products, places}, name + "/pairs");
  return b.Concat({parts[0], products}, 1, name);
}

TensorRef ProductOfFeatures(ModelBuilder& b, std::vector<TensorRef> parts, int64_t width,
                            bool apart, const std::string& concat, const std::string& name) {
  if (!apart) return b.Product(b.Concat(std::move(parts), 1, concat), width, name);
  TensorRef sum = b.Product(parts[0], width, absl::StrCat(name, "/part0"));
  for (size_t part = 1; part < parts.size(); ++part) {
    const std::string of = absl::StrCat(name, "/part", part);
    sum = b.Add(sum, b.Product(parts[part], width, of), of + "/sum");
  }
  return sum;
}

}  // namespace isomer
