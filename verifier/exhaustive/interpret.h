// An interpreter of declarations (pcg/ir/declaration.h), written from what that header says and
// from nothing else: for elements of any kind, point by point, without strides or compiled bodies.
#ifndef ISOMER_VERIFIER_EXHAUSTIVE_INTERPRET_H_
#define ISOMER_VERIFIER_EXHAUSTIVE_INTERPRET_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "pcg/ir/declaration.h"

namespace isomer {

// A logical tensor, row-major. Elements that a task does not hold, or does not make, are absent.
template <typename Value>
struct SparseTensor {
  std::vector<int64_t> shape;
  std::vector<std::optional<Value>> elements;
};

// The values of the iteration dims that a task goes over: [begin, end) of each.
struct DimRanges {
  std::vector<int64_t> begin, end;
};
DimRanges WholeRanges(const Declaration& declaration);

// Calls visit(coordinates) for every point of the box [begin, end), in row-major order.
template <typename Visit>
void ForEachPoint(const std::vector<int64_t>& begin, const std::vector<int64_t>& end, Visit visit) {
  std::vector<int64_t> at = begin;
  for (size_t i = 0; i < at.size(); ++i) {
    if (begin[i] >= end[i]) return;
  }
  while (true) {
    visit(at);
    size_t i = at.size();
    while (i > 0 && ++at[i - 1] == end[i - 1]) at[i - 1] = begin[i - 1], --i;
    if (i == 0) return;
  }
}

int64_t OffsetOf(const std::vector<int64_t>& shape, const std::vector<int64_t>& at);

// The outputs of the task over `ranges`. Elements: SymbolicElements or NumericElements.
// Errors: a point reads an element that is absent, or outside where the declaration says never; an
// index that is no integer, or outside of its range.
template <typename Elements>
absl::StatusOr<std::vector<SparseTensor<typename Elements::Value>>> Interpret(
    const Declaration& declaration, const DimRanges& ranges,
    const std::vector<SparseTensor<typename Elements::Value>>& operands, Elements* elements);

}  // namespace isomer

#endif  // ISOMER_VERIFIER_EXHAUSTIVE_INTERPRET_H_
