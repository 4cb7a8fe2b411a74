// Whole arrays in .npy files (npy.h reads rows).
#ifndef ISOMER_RUNTIME_DATA_NPY_ARRAY_H_
#define ISOMER_RUNTIME_DATA_NPY_ARRAY_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "pcg/evaluation/evaluator.h"
#include "pcg/ir/tensor_type.h"

namespace isomer {

// An array for a tensor of this type, whose sizes it has: [1] stands for a single number. Errors
// name the file, `tensor`, and the dim: other sizes, no integers where those are wanted.
absl::StatusOr<Array<double>> ReadNpyFor(const std::string& path, const std::string& tensor,
                                         const TensorType& type);

// What a .npy file, version 1.0, C order, begins with; its length is a multiple of 64. `descr`: of
// the elements, as NumPy has it.
std::string NpyHeaderOf(absl::string_view descr, absl::Span<const int64_t> dims);

// The contents of a .npy file, version 1.0, C order. bfloat16, which NumPy has not, is written as
// float32.
std::string NpyFileOf(const Array<double>& array, DataType dtype);

}  // namespace isomer

#endif  // ISOMER_RUNTIME_DATA_NPY_ARRAY_H_
