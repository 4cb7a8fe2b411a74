#ifndef ISOMER_RUNTIME_EXECUTION_ORTHOGONALIZE_H_
#define ISOMER_RUNTIME_EXECUTION_ORTHOGONALIZE_H_

#include <cstdint>

#include "absl/status/status.h"

namespace isomer {

// A matrix [rows, columns], row-major, becomes about the nearest one whose rows (or columns, if
// there are more rows) are orthonormal: U V' of its singular value decomposition U S V', but that
// singular values come out between 0.7 and 1.2. By five Newton-Schulz iterations in float32,
//
//   X = a X + (b X X' + c (X X')^2) X,   (a, b, c) = (3.4445, -4.775, 2.0315)
//
// from X divided by its norm, or by 1e-7 where that is less (Jordan et al., "Muon: An optimizer for
// hidden layers in neural networks", 2024, whose coefficients these are; torch.optim.Muon's
// defaults). What is zero stays zero.
absl::Status Orthogonalize(int64_t rows, int64_t columns, float* matrix);

}  // namespace isomer

#endif  // ISOMER_RUNTIME_EXECUTION_ORTHOGONALIZE_H_
