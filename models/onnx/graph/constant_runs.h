// Tensors that follow from constants, known without writing their elements out: the causal mask of
// a million tokens is two million runs, not 10^12 numbers.
#ifndef ISOMER_MODELS_ONNX_GRAPH_CONSTANT_RUNS_H_
#define ISOMER_MODELS_ONNX_GRAPH_CONSTANT_RUNS_H_

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "pcg/ir/plan.h"

namespace isomer {

// Elements of a row from the end of the run before it to before `end`: first, first + step, ..
struct ElementRun {
  int64_t end;
  double first, step = 0;
  friend bool operator==(const ElementRun&, const ElementRun&) = default;
};

// A tensor as rows along its last dim, each of runs.
struct TensorRuns {
  std::vector<int64_t> sizes;    // as the tensor's, but 1 along dims that only repeat
  std::vector<ElementRun> runs;  // of one row after the other; the last of a row ends at its size
  std::vector<int64_t> rows;     // of each row, where its runs end in `runs`

  int64_t row_size() const { return sizes.empty() ? 1 : sizes.back(); }
  int64_t num_rows() const { return static_cast<int64_t>(rows.size()); }
  // Elements, row-major. REQUIRES: they fit.
  std::vector<double> Written() const;
};
// Of elements, row-major; dims along which they do not change are of size 1. Equal neighbours are
// one run, and so are three or more numbers with equal distances.
TensorRuns RunsOf(std::vector<int64_t> sizes, const std::vector<double>& elements);

// Computes such tensors as they are asked for. Element by element, comparisons of positions are
// exact: they are integers.
class ConstantRuns {
 public:
  // `model` must outlive this, and keep what its tensors mean; nodes that it gets later are not
  // looked into.
  explicit ConstantRuns(const Model* model);
  // Null: it depends on inputs or on trained weights, it is not made of what is followed here
  // (elementwise operators, Expand, Trilu, Reshape and Transpose), or it takes too many runs.
  const TensorRuns* Of(TensorRef x);

 private:
  std::optional<TensorRuns> Computed(const Node& node) const;

  const Model& model_;
  std::vector<NodeId> order_;
  std::vector<int> position_;      // of nodes, in order_
  std::vector<bool> is_constant_;  // by node: nothing but constants before it
  std::map<NodeId, std::optional<TensorRuns>> known_;
  int64_t runs_ = 0;  // of all that is known
};

}  // namespace isomer

#endif  // ISOMER_MODELS_ONNX_GRAPH_CONSTANT_RUNS_H_
