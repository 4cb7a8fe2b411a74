// How the host arranges leaves into what devices store, where that only says where elements are
// (Transpose, Reshape, Concat, Split, casts to a float type, parallel operators): any box of the
// result can then be read from the leaves.
#ifndef ISOMER_RUNTIME_EXECUTION_ARRANGEMENT_H_
#define ISOMER_RUNTIME_EXECUTION_ARRANGEMENT_H_

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "pcg/ir/box.h"
#include "pcg/ir/graph.h"
#include "pcg/schedule/schedule.h"
#include "runtime/execution/leaf_values.h"

namespace isomer {

// Elements of a leaf, `count` from `first` on, every `stride`-th, that are those of a box from
// element `place` on (row-major).
struct LeafLine {
  NodeId leaf;
  int64_t first, stride, count, place;
};

// A box of a tensor whose elements lie in one leaf. An index of a dim, counted from the box's, is a
// number of several digits, the first the most significant; each digit is so many times its stride
// further in the leaf. So are transposed dims (other strides), cut ones (two digits) and dims that
// are put together (the digits of all).
struct LeafView {
  struct Digit {
    int64_t size, stride;
  };
  NodeId leaf;
  Box box;
  int64_t offset = 0;  // of its first element, in the leaf's row-major order
  std::vector<std::vector<Digit>> dims;
};

// Where the elements of a tensor lie in its leaves: in views that are all of it together, or, where
// none can say it (a cut across digits, a reshape of what was put together), found for each element
// by going back through the operators, which takes some 100 ns for each.
class Arrangement {
 public:
  // None if an operator does more than arrange. REQUIRES: `graph` outlives it.
  static std::optional<Arrangement> Of(const Graph& graph, const Schedule::HostTensor& tensor);

  // Calls f(line) for lines that are all of the box together.
  void ForEachLine(const Box& box, absl::FunctionRef<void(const LeafLine&)> f) const;
  // Of these, the lines of one leaf.
  void ForEachLineOf(NodeId leaf, const Box& box, absl::FunctionRef<void(const LeafLine&)> f) const;
  // How many those have.
  int64_t ElementsOf(NodeId leaf, const Box& box) const;
  const std::vector<NodeId>& leaves() const { return leaves_; }
  bool has_views() const { return !views_.empty(); }

  // Writes `box` of the tensor to a buffer of `dtype` that holds it. Errors: see LeafValues::Find.
  absl::Status ReadBox(const LeafValues& leaves, const Box& box, DataType dtype,
                       void* buffer) const;

 private:
  Arrangement(const Graph& graph, TensorRef tensor, std::vector<NodeId> leaves,
              std::vector<LeafView> views)
      : graph_(&graph), tensor_(tensor), leaves_(std::move(leaves)), views_(std::move(views)) {}
  void Walk(const Box& box, absl::FunctionRef<void(const LeafLine&)> f) const;

  const Graph* graph_;
  TensorRef tensor_;
  std::vector<NodeId> leaves_;
  std::vector<LeafView> views_;  // empty: elements are found one by one
};

}  // namespace isomer

#endif  // ISOMER_RUNTIME_EXECUTION_ARRANGEMENT_H_
