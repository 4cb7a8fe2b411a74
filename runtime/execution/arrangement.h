// How the host arranges leaves into what devices store, where that only says where elements are
// (Transpose, Reshape, Concat, Split, casts to a float type, parallel operators): any box of the
// result can then be read from the leaves.
#ifndef ISOMER_RUNTIME_EXECUTION_ARRANGEMENT_H_
#define ISOMER_RUNTIME_EXECUTION_ARRANGEMENT_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/functional/function_ref.h"
#include "pcg/ir/box.h"
#include "pcg/ir/graph.h"
#include "pcg/schedule/schedule.h"
#include "runtime/execution/leaf_values.h"

namespace isomer {

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

// Views that are the whole tensor together. None if an operator does more than arrange, or if a
// view cannot say it: a cut across digits.
std::optional<std::vector<LeafView>> LeafViewsOf(const Graph& graph,
                                                 const Schedule::HostTensor& tensor);

// Elements of a leaf, `count` from `first` on, every `stride`-th, that are those of a box from
// element `place` on (row-major).
struct LeafLine {
  NodeId leaf;
  int64_t first, stride, count, place;
};
// Calls f(line) for lines that are all of the box together.
void ForEachLeafLine(const std::vector<LeafView>& views, const Box& box,
                     absl::FunctionRef<void(const LeafLine&)> f);

// Writes `box` of the tensor to a buffer of `dtype` that holds it. Errors: see LeafValues::Find.
absl::Status ReadBox(const Graph& graph, const std::vector<LeafView>& views,
                     const LeafValues& leaves, const Box& box, DataType dtype, void* buffer);

}  // namespace isomer

#endif  // ISOMER_RUNTIME_EXECUTION_ARRANGEMENT_H_
