#include "runtime/device/strided.h"

#include <utility>

namespace isomer {

std::vector<int64_t> BroadcastStrides(absl::Span<const int64_t> shape, int rank) {
  std::vector<int64_t> strides(rank, 0);
  int64_t stride = 1;
  for (int i = static_cast<int>(shape.size()) - 1; i >= 0; --i) {
    if (shape[i] != 1) strides[i + rank - static_cast<int>(shape.size())] = stride;
    stride *= shape[i];
  }
  return strides;
}

template <size_t N>
StridedLoop<N>::StridedLoop(std::vector<int64_t> sizes,
                            std::array<std::vector<int64_t>, N> strides) {
  for (size_t i = 0; i < sizes.size(); ++i) {
    if (sizes[i] == 1) continue;
    bool merges = !sizes_.empty();
    for (size_t n = 0; merges && n < N; ++n) {
      merges = strides_[n].back() == strides[n][i] * sizes[i];
    }
    if (merges) {
      sizes_.back() *= sizes[i];
    } else {
      sizes_.push_back(sizes[i]);
    }
    for (size_t n = 0; n < N; ++n) {
      if (merges) strides_[n].pop_back();
      strides_[n].push_back(strides[n][i]);
    }
  }
  if (sizes_.empty()) {  // A scalar.
    sizes_.push_back(1);
    for (size_t n = 0; n < N; ++n) strides_[n].push_back(0);
  }
}

template class StridedLoop<2>;
template class StridedLoop<3>;
template class StridedLoop<4>;

}  // namespace isomer
