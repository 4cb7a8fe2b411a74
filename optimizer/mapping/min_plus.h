// The inner loop of mapping: matrix products over the (min, +) semiring.
#ifndef ISOMER_OPTIMIZER_MAPPING_MIN_PLUS_H_
#define ISOMER_OPTIMIZER_MAPPING_MIN_PLUS_H_

namespace isomer {

// out[r][c] = min(out[r][c], min over k < inner of left[r][k] + middle[k] + right[k][c]).
// Row-major; `left_stride` and so on: from one row to the next.
void MinPlus(const float* left, int left_stride, const float* middle, const float* right,
             int right_stride, int rows, int inner, int cols, float* out, int out_stride);

// out[r] = min(out[r], min over k < inner of table[r][k] + added[k]).
void MinOfSums(const float* table, int stride, const float* added, int rows, int inner, float* out);

}  // namespace isomer

#endif  // ISOMER_OPTIMIZER_MAPPING_MIN_PLUS_H_
