#ifndef ISOMER_RUNTIME_CPU_INDEX_RANGE_H_
#define ISOMER_RUNTIME_CPU_INDEX_RANGE_H_

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "runtime/cpu/kernels.h"

namespace isomer {

// The indices of a look-up (operand `indices`) along a dim of the logical tensor that is looked up
// (axis `axis` of operand `table`), of which a task has the part [first, first + size).
struct IndexLimits {
  std::string op;
  DataType dtype;
  int64_t count, first, size, whole;

  IndexLimits(const KernelCall& call, int table, int axis, int indices)
      : op(call.op.name()),
        dtype(call.dtypes[indices]),
        count(call.operands[indices].Volume()),
        first(call.operands[table].origin[axis]),
        size(call.operands[table].shape[axis]),
        whole(call.declaration.operands[table][axis].value()) {}

  // Indices within the task's part; -1 for those of other parts.
  absl::StatusOr<std::vector<int64_t>> Read(const void* data) const {
    std::vector<int64_t> indices(count);
    if (dtype == DataType::kInt32) {
      std::copy_n(static_cast<const int32_t*>(data), count, indices.begin());
    } else {
      std::copy_n(Indices(data), count, indices.begin());
    }
    for (int64_t& index : indices) {
      if (index < 0 || index >= whole) {
        return absl::InvalidArgumentError(
            absl::StrCat(op, ": index ", index, " is not in [0, ", whole, ")"));
      }
      index = index >= first && index < first + size ? index - first : -1;
    }
    return indices;
  }
};

}  // namespace isomer

#endif  // ISOMER_RUNTIME_CPU_INDEX_RANGE_H_
