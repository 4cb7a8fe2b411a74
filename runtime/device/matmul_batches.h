// The matrices that a MatMul multiplies.
#ifndef ISOMER_RUNTIME_DEVICE_MATMUL_BATCHES_H_
#define ISOMER_RUNTIME_DEVICE_MATMUL_BATCHES_H_

#include <cstdint>
#include <vector>

#include "runtime/device/backend.h"

namespace isomer {

// Of m x k by k x n, results of m x n. All in elements.
struct MatMulBatches {
  // Matrices of a batch at equal distances: where the first of each lies, and how far it is to the
  // next, 0 if all use one.
  struct Run {
    int64_t count = 1, a = 0, b = 0, c = 0;
    int64_t a_stride = 0, b_stride = 0, c_stride = 0;
  };
  int64_t m, n, k;
  std::vector<Run> runs;
  bool shares_a = false, shares_b = false;  // a matrix of it is used more than once
};
// A batch that shares its second matrix is one product of a long first one.
MatMulBatches BatchesOf(const KernelCall& call);

}  // namespace isomer

#endif  // ISOMER_RUNTIME_DEVICE_MATMUL_BATCHES_H_
