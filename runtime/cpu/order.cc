// Operators that go along an axis in order: ArgMax, ArgMin, TopK, CumSum.
#include <algorithm>
#include <numeric>

#include "runtime/cpu/kernels.h"
#include "runtime/cpu/lines.h"

namespace isomer {

KernelFunction ArgMaxKernel(const KernelCall& call) {
  if (call.gradient) return ZeroGradientKernel(call);
  const AxisSplit split = SplitAtItsAxis(call);
  const float sign = call.op.kind() == OpKind::kArgMax ? 1 : -1;
  const bool last = call.op.Int("last") == 1;
  return [=](Reads reads, Writes writes) {
    int64_t* y = static_cast<int64_t*>(writes[0]);
    ForEachLine(split, [&](int64_t at) {
      const float* x = Floats(reads[0]) + at;
      int64_t best = 0;
      for (int64_t j = 1; j < split.size; ++j) {
        const float now = sign * x[j * split.inner], before = sign * x[best * split.inner];
        if (now > before || (last && now == before)) best = j;
      }
      *y++ = best;
    });
    return absl::OkStatus();
  };
}

namespace {

// The places of the k first of a line, best first; of equal ones the first.
std::vector<int64_t> FirstOf(const float* x, const AxisSplit& split, int64_t k, bool largest) {
  std::vector<int64_t> places(split.size);
  std::iota(places.begin(), places.end(), 0);
  std::partial_sort(places.begin(), places.begin() + k, places.end(), [&](int64_t a, int64_t b) {
    const float xa = x[a * split.inner], xb = x[b * split.inner];
    if (xa != xb) return largest ? xa > xb : xa < xb;
    return a < b;
  });
  places.resize(k);
  return places;
}

}  // namespace

KernelFunction TopKKernel(const KernelCall& call) {
  const AxisSplit split = SplitAtItsAxis(call);
  const int64_t k = call.op.Int("k"), volume = call.operands[0].Volume();
  const bool largest = call.op.Int("largest") == 1;
  // Where a line of the outputs begins, from where it begins in the operand.
  auto output_at = [split, k](int64_t at) {
    return at / (split.size * split.inner) * k * split.inner + at % split.inner;
  };
  if (call.gradient) {
    return [=](Reads reads, Writes writes) {
      float* dx = Floats(writes[0]);
      std::fill_n(dx, volume, 0.0f);
      ForEachLine(split, [&](int64_t at) {
        const float* g = Floats(reads[3]) + output_at(at);
        for (int64_t place : FirstOf(Floats(reads[0]) + at, split, k, largest)) {
          dx[at + place * split.inner] = *g;
          g += split.inner;
        }
      });
      return absl::OkStatus();
    };
  }
  return [=](Reads reads, Writes writes) {
    ForEachLine(split, [&](int64_t at) {
      const float* x = Floats(reads[0]) + at;
      float* values = Floats(writes[0]) + output_at(at);
      int64_t* indices = static_cast<int64_t*>(writes[1]) + output_at(at);
      for (int64_t place : FirstOf(x, split, k, largest)) {
        *values = x[place * split.inner];
        *indices = place;
        values += split.inner;
        indices += split.inner;
      }
    });
    return absl::OkStatus();
  };
}

// The gradient is the sum from the other end.
KernelFunction CumSumKernel(const KernelCall& call) {
  const AxisSplit split = SplitAtItsAxis(call);
  const bool exclusive = call.op.Int("exclusive") == 1;
  const bool backwards = (call.op.Int("reverse") == 1) != call.gradient;
  return [=, from = call.gradient ? 2 : 0](Reads reads, Writes writes) {
    ForEachLine(split, [&](int64_t at) {
      double sum = 0;
      for (int64_t j = 0; j < split.size; ++j) {
        const int64_t place = at + (backwards ? split.size - 1 - j : j) * split.inner;
        const double x = Floats(reads[from])[place];
        Floats(writes[0])[place] = static_cast<float>(exclusive ? sum : sum + x);
        sum += x;
      }
    });
    return absl::OkStatus();
  };
}

}  // namespace isomer
