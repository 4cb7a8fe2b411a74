#ifndef ISOMER_RUNTIME_DEVICE_STRIDED_H_
#define ISOMER_RUNTIME_DEVICE_STRIDED_H_

#include <array>
#include <cstdint>
#include <vector>

#include "absl/types/span.h"

namespace isomer {

// Row-major strides of `shape`, aligned from the right with `rank` dims; dims of size 1, and those
// that `shape` lacks, have stride 0, so that they are broadcast.
std::vector<int64_t> BroadcastStrides(absl::Span<const int64_t> shape, int rank);

// A loop nest over `sizes` with N running offsets, neighbouring dims merged where all strides
// allow it.
template <size_t N>
class StridedLoop {
 public:
  StridedLoop(std::vector<int64_t> sizes, std::array<std::vector<int64_t>, N> strides);

  // Calls body(offsets, count, inner strides) for each innermost run.
  template <typename Body>
  void ForEachRun(Body body) const {
    const int last = static_cast<int>(sizes_.size()) - 1;
    std::array<int64_t, N> offsets{}, inner{};
    for (size_t n = 0; n < N; ++n) inner[n] = strides_[n][last];
    std::vector<int64_t> at(sizes_.size(), 0);
    while (true) {
      body(offsets, sizes_[last], inner);
      int i = last - 1;
      for (; i >= 0; --i) {
        for (size_t n = 0; n < N; ++n) offsets[n] += strides_[n][i];
        if (++at[i] < sizes_[i]) break;
        for (size_t n = 0; n < N; ++n) offsets[n] -= strides_[n][i] * sizes_[i];
        at[i] = 0;
      }
      if (i < 0) return;
    }
  }

  // Of the dims that are left, outermost first; at least one.
  const std::vector<int64_t>& sizes() const { return sizes_; }
  const std::vector<int64_t>& strides(size_t n) const { return strides_[n]; }

 private:
  std::vector<int64_t> sizes_;
  std::array<std::vector<int64_t>, N> strides_;
};

}  // namespace isomer

#endif  // ISOMER_RUNTIME_DEVICE_STRIDED_H_
