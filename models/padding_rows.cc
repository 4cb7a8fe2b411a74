#include "models/padding_rows.h"

#include <cstdint>
#include <optional>
#include <vector>

#include "models/onnx/graph/drop_unused.h"

namespace isomer {
namespace {

class PaddingRows {
 public:
  explicit PaddingRows(const Model& model) : model_(model), graph_(model.graph) {}

  // The embedding that a call is, but for a row that is put in place of what is there already.
  std::optional<TensorRef> EmbeddingIn(const Node& where) const {
    if (where.op.kind() != OpKind::kWhere) return std::nullopt;
    const Node& rows = Producer(where.inputs[2]);
    if (rows.op.kind() != OpKind::kEmbedding) return std::nullopt;
    const std::vector<int64_t> sizes = graph_.type(rows.inputs[0]).Sizes();
    const std::optional<int64_t> row = RowOf(where.inputs[0], rows.inputs[1], sizes[0]);
    const StoredValues* const value = ValuesOf(where.inputs[1]);
    const StoredValues* const table = ValuesOf(rows.inputs[0]);
    if (!row || value == nullptr || table == nullptr) return std::nullopt;
    const int64_t width = sizes[1];
    const auto begin = static_cast<size_t>(*row * width);
    if (static_cast<int64_t>(value->size()) != width || begin + width > table->size() ||
        graph_.type(where.inputs[2]) != where.outputs[0]) {
      return std::nullopt;
    }
    for (size_t i = 0; i < value->size(); ++i) {
      if (!((*value)[i] == (*table)[begin + i])) return std::nullopt;
    }
    return where.inputs[2];
  }

 private:
  const Node& Producer(TensorRef x) const { return graph_.node(x.node); }

  // What the model holds of a leaf; null where it is no leaf, or holds nothing.
  const StoredValues* ValuesOf(TensorRef x) const {
    const auto found = model_.weights.find(Producer(x).name);
    const bool holds = IsLeaf(Producer(x).op.kind()) && found != model_.weights.end();
    return holds ? &found->second : nullptr;
  }

  // The row, of so many, for which `is_row` says whether an index is that.
  std::optional<int64_t> RowOf(TensorRef is_row, TensorRef indices, int64_t rows) const {
    std::vector<int64_t> sizes = graph_.type(indices).Sizes();
    sizes.push_back(1);  // it is the same for all of a row
    if (Producer(is_row).op.kind() != OpKind::kReshape || graph_.type(is_row).Sizes() != sizes) {
      return std::nullopt;
    }
    const Node& equal = Producer(Producer(is_row).inputs[0]);
    if (equal.op.kind() != OpKind::kEqual || equal.inputs[0] != indices) return std::nullopt;
    const StoredValues* const number = ValuesOf(equal.inputs[1]);
    if (Producer(equal.inputs[1]).op.kind() != OpKind::kConstant || number == nullptr ||
        number->size() != 1) {
      return std::nullopt;
    }
    const double row = (*number)[0];
    const bool is_there = row >= 0 && row < static_cast<double>(rows);
    return is_there ? std::optional(static_cast<int64_t>(row)) : std::nullopt;
  }

  const Model& model_;
  const Graph& graph_;
};

}  // namespace

int OmitPaddingRows(Model* model) {
  int omitted = 0;
  const int nodes = model->graph.num_nodes();
  for (int id = 0; id < nodes; ++id) {
    const std::optional<TensorRef> rows = PaddingRows(*model).EmbeddingIn(model->graph.node(id));
    if (!rows) continue;
    model->graph.ReplaceUses({NodeId{id}, 0}, *rows);
    ++omitted;
  }
  if (omitted > 0) DropUnused(model);
  return omitted;
}

}  // namespace isomer
