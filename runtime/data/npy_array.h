// Whole arrays in .npy files (npy.h reads rows).
#ifndef ISOMER_RUNTIME_DATA_NPY_ARRAY_H_
#define ISOMER_RUNTIME_DATA_NPY_ARRAY_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "pcg/evaluation/evaluator.h"
#include "pcg/ir/tensor_type.h"

namespace isomer {

// An array for a tensor of this type, whose sizes it has: [1] stands for a single number. Errors
// name the file, `tensor`, and the dim: other sizes, no integers where those are wanted.
absl::StatusOr<Array<double>> ReadNpyFor(const std::string& path, const std::string& tensor,
                                         const TensorType& type);

// The contents of a .npy file, version 1.0, C order. bfloat16, which NumPy has not, is written as
// float32.
std::string NpyFileOf(const Array<double>& array, DataType dtype);

}  // namespace isomer

#endif  // ISOMER_RUNTIME_DATA_NPY_ARRAY_H_
