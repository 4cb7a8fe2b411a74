// Softmax and LogSoftmax. Where the axis is the last, a line is computed in vectors of its
// elements; else, as over the channels of images, lines that lie side by side are, in vectors of
// lines.
#include <algorithm>
#include <cmath>

#include "runtime/cpu/kernels.h"
#include "runtime/cpu/lines.h"
#include "runtime/cpu/vector_math.h"

namespace isomer {
namespace {

// So many lines at a time: what is known of each is in the first cache.
constexpr int64_t kLinesBeside = 256;

// Lines of `size` elements, `stride` apart, of which `count` <= kLinesBeside lie side by side.
struct LineGroup {
  int64_t size, stride, count;

  // Calls f(offset) for the first elements of all lines, then for the second, ..
  template <typename Function>
  void ForEachRow(Function f) const {
    for (int64_t j = 0; j < size; ++j) f(j * stride);
  }
};

// Calls f(offset of the first element, group) for groups that have every line.
template <typename Function>
void ForEachGroup(const AxisSplit& split, Function f) {
  for (int64_t o = 0; o < split.outer; ++o) {
    for (int64_t i = 0; i < split.inner; i += kLinesBeside) {
      f(o * split.size * split.inner + i,
        LineGroup{split.size, split.inner, std::min(kLinesBeside, split.inner - i)});
    }
  }
}

void MaximaOf(const LineGroup& lines, const float* x, float* maxima) {
  std::copy_n(x, lines.count, maxima);
  lines.ForEachRow([&](int64_t at) {
    Apply([](float max, float x) { return std::max(max, x); }, lines.count, maxima, maxima, x + at);
  });
}

void SoftmaxOf(const LineGroup& lines, const float* x, float* y) {
  if (lines.stride == 1) {
    Softmax(x, lines.size, y);
    return;
  }
  float maxima[kLinesBeside], sums[kLinesBeside] = {};
  MaximaOf(lines, x, maxima);
  lines.ForEachRow([&](int64_t at) {
    Apply([](float x, float max) { return Exp(x - max); }, lines.count, y + at, x + at, maxima);
    Add(y + at, lines.count, sums);
  });
  lines.ForEachRow([&](int64_t at) {
    Apply([](float p, float sum) { return p / sum; }, lines.count, y + at, y + at, sums);
  });
}

// dx_j = y_j (g_j - sum_i g_i y_i)
void SoftmaxGradientOf(const LineGroup& lines, const float* y, const float* g, float* dx) {
  if (lines.stride == 1) return SoftmaxGradient(y, g, lines.size, dx);
  float dots[kLinesBeside] = {};
  lines.ForEachRow([&](int64_t at) {
    Apply([](float dot, float g, float y) { return dot + g * y; }, lines.count, dots, dots, g + at,
          y + at);
  });
  lines.ForEachRow([&](int64_t at) {
    Apply([](float y, float g, float dot) { return y * (g - dot); }, lines.count, dx + at, y + at,
          g + at, dots);
  });
}

// y_j = x_j - max - log sum_i exp(x_i - max), in this order: next to a maximum that is large, as of
// a line that is masked whole, the logarithm would be lost.
void LogSoftmaxOf(const LineGroup& lines, const float* x, float* y) {
  if (lines.stride == 1) {
    const SoftmaxSums sums = SumsOfSoftmax(x, lines.size);
    Apply([max = sums.maximum, log = std::log(sums.sum)](float x) { return x - max - log; },
          lines.size, y, x);
    return;
  }
  float maxima[kLinesBeside], sums[kLinesBeside] = {};
  MaximaOf(lines, x, maxima);
  lines.ForEachRow([&](int64_t at) {
    Apply([](float sum, float x, float max) { return sum + Exp(x - max); }, lines.count, sums, sums,
          x + at, maxima);
  });
  for (int64_t i = 0; i < lines.count; ++i) sums[i] = std::log(sums[i]);
  lines.ForEachRow([&](int64_t at) {
    Apply([](float x, float max, float log) { return x - max - log; }, lines.count, y + at, x + at,
          maxima, sums);
  });
}

// dx_j = g_j - exp(y_j) sum_i g_i
void LogSoftmaxGradientOf(const LineGroup& lines, const float* y, const float* g, float* dx) {
  if (lines.stride == 1) {
    const auto sum = static_cast<float>(LineSum(g, lines.size));
    Apply([sum](float y, float g) { return g - Exp(y) * sum; }, lines.size, dx, y, g);
    return;
  }
  float sums[kLinesBeside] = {};
  lines.ForEachRow([&](int64_t at) { Add(g + at, lines.count, sums); });
  lines.ForEachRow([&](int64_t at) {
    Apply([](float y, float g, float sum) { return g - Exp(y) * sum; }, lines.count, dx + at,
          y + at, g + at, sums);
  });
}

using ForwardOfLines = void (*)(const LineGroup&, const float* x, float* y);
using GradientOfLines = void (*)(const LineGroup&, const float* y, const float* g, float* dx);

KernelFunction KernelOfLines(const KernelCall& call, ForwardOfLines forward,
                             GradientOfLines gradient) {
  const AxisSplit split = SplitAtItsAxis(call);
  if (!call.gradient) {
    return [=](Reads reads, Writes writes) {
      ForEachGroup(split, [&](int64_t at, const LineGroup& lines) {
        forward(lines, Floats(reads[0]) + at, Floats(writes[0]) + at);
      });
      return absl::OkStatus();
    };
  }
  return [=](Reads reads, Writes writes) {
    ForEachGroup(split, [&](int64_t at, const LineGroup& lines) {
      gradient(lines, Floats(reads[1]) + at, Floats(reads[2]) + at, Floats(writes[0]) + at);
    });
    return absl::OkStatus();
  };
}

}  // namespace

KernelFunction SoftmaxKernel(const KernelCall& call) {
  return KernelOfLines(call, SoftmaxOf, SoftmaxGradientOf);
}

KernelFunction LogSoftmaxKernel(const KernelCall& call) {
  return KernelOfLines(call, LogSoftmaxOf, LogSoftmaxGradientOf);
}

}  // namespace isomer
