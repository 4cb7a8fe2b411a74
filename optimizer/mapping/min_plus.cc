#include "optimizer/mapping/min_plus.h"

#include <algorithm>

// Uses the processor's widest vectors; sums and minima are the same in every width.
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && \
    !defined(__SANITIZE_THREAD__) && !defined(__SANITIZE_ADDRESS__)
#define ISOMER_WIDE __attribute__((target_clones("avx512f", "avx2", "default")))
#else
#define ISOMER_WIDE
#endif

namespace isomer {
namespace {

constexpr int kColumns = 64;  // per block: four registers of 16
constexpr int kLanes = 16;

}  // namespace

// A block of a row of `out` stays in registers while k runs.
ISOMER_WIDE void MinPlus(const float* left, int left_stride, const float* middle,
                         const float* right, int right_stride, int rows, int inner, int cols,
                         float* out, int out_stride) {
  int c = 0;
  for (; c + kColumns <= cols; c += kColumns) {
    for (int r = 0; r < rows; ++r) {
      float block[kColumns];
      float* to = out + static_cast<long>(r) * out_stride + c;
      const float* from = left + static_cast<long>(r) * left_stride;
      for (int i = 0; i < kColumns; ++i) block[i] = to[i];
      for (int k = 0; k < inner; ++k) {
        const float base = from[k] + middle[k];
        const float* row = right + static_cast<long>(k) * right_stride + c;
        for (int i = 0; i < kColumns; ++i) block[i] = std::min(block[i], base + row[i]);
      }
      for (int i = 0; i < kColumns; ++i) to[i] = block[i];
    }
  }
  if (c == cols) return;
  const int rest = cols - c;
  for (int r = 0; r < rows; ++r) {
    float* to = out + static_cast<long>(r) * out_stride + c;
    const float* from = left + static_cast<long>(r) * left_stride;
    for (int k = 0; k < inner; ++k) {
      const float base = from[k] + middle[k];
      const float* row = right + static_cast<long>(k) * right_stride + c;
      for (int i = 0; i < rest; ++i) to[i] = std::min(to[i], base + row[i]);
    }
  }
}

// Minima of every 16th sum stay in a register.
ISOMER_WIDE void MinOfSums(const float* table, int stride, const float* added, int rows, int inner,
                           float* out) {
  for (int r = 0; r < rows; ++r) {
    const float* row = table + static_cast<long>(r) * stride;
    float least = out[r];
    int k = 0;
    if (inner >= kLanes) {
      float lanes[kLanes];
      for (float& lane : lanes) lane = least;
      for (; k + kLanes <= inner; k += kLanes) {
        for (int i = 0; i < kLanes; ++i) lanes[i] = std::min(lanes[i], row[k + i] + added[k + i]);
      }
      for (float lane : lanes) least = std::min(least, lane);
    }
    for (; k < inner; ++k) least = std::min(least, row[k] + added[k]);
    out[r] = least;
  }
}

}  // namespace isomer
