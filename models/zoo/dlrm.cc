#include "absl/strings/str_cat.h"
#include "models/zoo/model_builder.h"
#include "models/zoo/zoo.h"

namespace isomer {
namespace {

TensorRef DenseLayers(ModelBuilder& b, TensorRef x, int64_t width, int64_t hidden, int64_t layers,
                      const std::string& prefix) {
  for (int64_t layer = 0; layer < layers; ++layer) {
    const std::string name = absl::StrCat(prefix, "/layer", layer);
    x = b.Call(OpKind::kRelu, {b.Linear(x, width, hidden, name)}, name + "/relu");
    width = hidden;
  }
  return x;
}

}  // namespace

// Dense features go through the bottom layers, each categorical feature through its table; the
// results side by side through the top layers to one score, compared with a click rate by mse.
absl::StatusOr<Model> BuildDlrm(const ZooArguments& arguments) {
  const int64_t batch = arguments.at("batch"), hidden = arguments.at("hidden");
  const int64_t tables = arguments.at("tables"), layers = arguments.at("layers");
  ModelBuilder b;
  if (tables > 63) b.Fail(absl::InvalidArgumentError("tables is above 63, what a Concat can join"));
  const TensorRef dense = b.Input("dense", {batch, arguments.at("dense")});
  std::vector<TensorRef> parts = {
      DenseLayers(b, dense, arguments.at("dense"), hidden, layers, "bottom")};
  for (int64_t t = 0; t < tables && t < 64; ++t) {
    const std::string name = absl::StrCat("table", t);
    const TensorRef ids = b.Input(name + "_ids", {batch}, DataType::kInt64);
    const TensorRef table = b.Weight(name + ".weight", {arguments.at("rows"), hidden});
    parts.push_back(b.Call(OpKind::kEmbedding, {table, ids}, name));
  }
  const TensorRef joined =
      b.Call({OpKind::kConcat, {{"axis", int64_t{1}}}}, std::move(parts), "interaction");
  const TensorRef top = DenseLayers(b, joined, (tables + 1) * hidden, hidden, layers, "top");
  b.Output("score", b.Linear(top, hidden, 1, "score"));
  return b.Build();
}

}  // namespace isomer
