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

  // The same with a sample for every place, where channels are innermost; else as it is.
  Channels ByPlace() const {
    Channels places = *this;
    if (!last) return places;
    places.outer *= inner;
    places.inner = 1;
    return places;
  }
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

// Per channel and term, adds the sum over samples [first, end) of what terms(offset, channel)
// returns, N floats, to sums[t * size + channel]. In float over no more than a few hundred
// elements, then in double. `partial`: N * size floats to work with.
template <size_t N, typename Terms>
ISOMER_VECTORISED void AddSumsOfChannels(const Channels& channels, int64_t first, int64_t end,
                                         Terms terms, float* partial, double* sums) {
  constexpr int64_t kRows = 64, kLanes = 16;
  const int64_t size = channels.size, inner = channels.inner;
  if (channels.last) {
    for (int64_t begin = first * inner; begin < end * inner; begin += kRows) {
      std::fill_n(partial, N * size, 0.0f);
      float* to = partial;
      for (int64_t row = begin; row < std::min(begin + kRows, end * inner); ++row) {
#pragma GCC ivdep
        for (int64_t c = 0; c < size; ++c) {
          const std::array<float, N> values = terms(row * size + c, c);
          for (size_t t = 0; t < N; ++t) to[t * size + c] += values[t];
        }
      }
      for (int64_t i = 0; i < static_cast<int64_t>(N) * size; ++i) sums[i] += partial[i];
    }
    return;
  }
  for (int64_t line = first * size; line < end * size; ++line) {
    const int64_t c = line % size;
    for (int64_t begin = line * inner; begin < (line + 1) * inner; begin += kRows * kLanes) {
      const int64_t stop = std::min(begin + kRows * kLanes, (line + 1) * inner);
      float lanes[N][kLanes] = {};
      int64_t i = begin;
      for (; i + kLanes <= stop; i += kLanes) {
        for (int64_t lane = 0; lane < kLanes; ++lane) {
          const std::array<float, N> values = terms(i + lane, c);
          for (size_t t = 0; t < N; ++t) lanes[t][lane] += values[t];
        }
      }
      for (int64_t lane = 0; i < stop; ++i, ++lane) {
        const std::array<float, N> values = terms(i, c);
        for (size_t t = 0; t < N; ++t) lanes[t][lane] += values[t];
      }
      for (size_t t = 0; t < N; ++t) {
        for (float value : lanes[t]) sums[t * size + c] += value;
      }
    }
  }
}

}  // namespace isomer

#endif  // ISOMER_RUNTIME_CPU_CHANNELS_H_
