// Softmax and LogSoftmax.
#include <algorithm>
#include <cmath>

#include "runtime/cpu/kernels.h"
#include "runtime/cpu/lines.h"
#include "runtime/cpu/vector_math.h"

namespace isomer {
namespace {

void SoftmaxLine(const float* x, float* y, int64_t size, int64_t stride) {
  if (stride == 1) {
    Softmax(x, size, y);
    return;
  }
  float max = x[0], sum = 0;
  for (int64_t j = 1; j < size; ++j) max = std::max(max, x[j * stride]);
  for (int64_t j = 0; j < size; ++j) sum += y[j * stride] = Exp(x[j * stride] - max);
  for (int64_t j = 0; j < size; ++j) y[j * stride] /= sum;
}

// dx_j = y_j (g_j - sum_i g_i y_i)
void SoftmaxGradientLine(const float* y, const float* g, float* dx, int64_t size, int64_t stride) {
  if (stride == 1) return SoftmaxGradient(y, g, size, dx);
  float dot = 0;
  for (int64_t j = 0; j < size; ++j) dot += g[j * stride] * y[j * stride];
  for (int64_t j = 0; j < size; ++j) {
    dx[j * stride] = y[j * stride] * (g[j * stride] - dot);
  }
}

// log sum_j exp(x_j)
float LogSumExp(const float* x, int64_t size, int64_t stride) {
  if (stride == 1) {
    const SoftmaxSums sums = SumsOfSoftmax(x, size);
    return sums.maximum + std::log(sums.sum);
  }
  float max = x[0], sum = 0;
  for (int64_t j = 1; j < size; ++j) max = std::max(max, x[j * stride]);
  for (int64_t j = 0; j < size; ++j) sum += Exp(x[j * stride] - max);
  return max + std::log(sum);
}

}  // namespace

KernelFunction SoftmaxKernel(const KernelCall& call) {
  const AxisSplit split = SplitAtItsAxis(call);
  if (!call.gradient) {
    return [split](Reads reads, Writes writes) {
      ForEachLine(split, [&](int64_t at) {
        SoftmaxLine(Floats(reads[0]) + at, Floats(writes[0]) + at, split.size, split.inner);
      });
      return absl::OkStatus();
    };
  }
  return [split](Reads reads, Writes writes) {
    ForEachLine(split, [&](int64_t at) {
      SoftmaxGradientLine(Floats(reads[1]) + at, Floats(reads[2]) + at, Floats(writes[0]) + at,
                          split.size, split.inner);
    });
    return absl::OkStatus();
  };
}

// y_j = x_j - log sum_i exp(x_i);  dx_j = g_j - exp(y_j) sum_i g_i
KernelFunction LogSoftmaxKernel(const KernelCall& call) {
  return [split = SplitAtItsAxis(call), gradient = call.gradient](Reads reads, Writes writes) {
    ForEachLine(split, [&](int64_t at) {
      float* to = Floats(writes[0]) + at;
      const int64_t end = split.size * split.inner;
      if (!gradient) {
        const float* x = Floats(reads[0]) + at;
        const float l = LogSumExp(x, split.size, split.inner);
        for (int64_t j = 0; j < end; j += split.inner) to[j] = x[j] - l;
        return;
      }
      const float *y = Floats(reads[1]) + at, *g = Floats(reads[2]) + at;
      float sum = 0;
      for (int64_t j = 0; j < end; j += split.inner) sum += g[j];
      for (int64_t j = 0; j < end; j += split.inner) to[j] = g[j] - Exp(y[j]) * sum;
    });
    return absl::OkStatus();
  };
}

}  // namespace isomer
