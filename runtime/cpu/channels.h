// Tensors as [outer, channels, inner], in either layout: what normalisation and pooling see.
#ifndef ISOMER_RUNTIME_CPU_CHANNELS_H_
#define ISOMER_RUNTIME_CPU_CHANNELS_H_

#include <algorithm>
#include <array>
#include <cstdint>
#include <vector>

#include "runtime/cpu/kernels.h"
#include "runtime/cpu/vector_math.h"

namespace isomer {

struct Channels {
  int64_t outer, size, inner;
  bool last;  // [outer, inner, size] in memory

  Channels(const Box& box, Layout layout)
      : outer(box.shape[0]),
        size(box.shape[1]),
        inner(Product(absl::MakeConstSpan(box.shape).subspan(2))),
        last(layout == Layout::kChannelsLast || inner == 1) {}
  int64_t OfSample() const { return size * inner; }
};

// Calls f(offset, channel) for every element of samples [first, end), as loops that the compiler
// can vectorise: f must not write what it reads by the channel.
template <typename Function>
ISOMER_VECTORISED void ForEachElement(const Channels& channels, int64_t first, int64_t end,
                                      Function f) {
  const int64_t size = channels.size, inner = channels.inner;
  if (channels.last) {
    for (int64_t row = first * inner; row < end * inner; ++row) {
#pragma GCC ivdep
      for (int64_t c = 0; c < size; ++c) f(row * size + c, c);
    }
    return;
  }
  for (int64_t line = first * size; line < end * size; ++line) {
    const int64_t c = line % size;
#pragma GCC ivdep
    for (int64_t i = line * inner; i < (line + 1) * inner; ++i) f(i, c);
  }
}

// Per channel and term, the sum over samples [first, end) of what terms(offset, channel) returns, N
// floats: sums[t * size + channel]. In float over no more than a few hundred elements, then in
// double.
template <size_t N, typename Terms>
ISOMER_VECTORISED std::vector<double> SumsOfChannels(const Channels& channels, int64_t first,
                                                     int64_t end, Terms terms) {
  constexpr int64_t kRows = 64, kLanes = 16;
  const int64_t size = channels.size, inner = channels.inner;
  std::vector<double> sums(N * size, 0);
  if (channels.last) {
    std::vector<float> partial(N * size);
    for (int64_t begin = first * inner; begin < end * inner; begin += kRows) {
      std::fill(partial.begin(), partial.end(), 0.0f);
      float* to = partial.data();
      for (int64_t row = begin; row < std::min(begin + kRows, end * inner); ++row) {
#pragma GCC ivdep
        for (int64_t c = 0; c < size; ++c) {
          const std::array<float, N> values = terms(row * size + c, c);
          for (size_t t = 0; t < N; ++t) to[t * size + c] += values[t];
        }
      }
      for (size_t i = 0; i < sums.size(); ++i) sums[i] += partial[i];
    }
    return sums;
  }
  for (int64_t line = first * size; line < end * size; ++line) {
    const int64_t c = line % size;
    for (int64_t begin = line * inner; begin < (line + 1) * inner; begin += kRows * kLanes) {
      const int64_t stop = std::min(begin + kRows * kLanes, (line + 1) * inner);
      float partial[N][kLanes] = {};
      int64_t i = begin;
      for (; i + kLanes <= stop; i += kLanes) {
        for (int64_t lane = 0; lane < kLanes; ++lane) {
          const std::array<float, N> values = terms(i + lane, c);
          for (size_t t = 0; t < N; ++t) partial[t][lane] += values[t];
        }
      }
      for (int64_t lane = 0; i < stop; ++i, ++lane) {
        const std::array<float, N> values = terms(i, c);
        for (size_t t = 0; t < N; ++t) partial[t][lane] += values[t];
      }
      for (size_t t = 0; t < N; ++t) {
        for (float value : partial[t]) sums[t * size + c] += value;
      }
    }
  }
  return sums;
}

}  // namespace isomer

#endif  // ISOMER_RUNTIME_CPU_CHANNELS_H_
