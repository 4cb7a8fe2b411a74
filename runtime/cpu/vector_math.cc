#include "runtime/cpu/vector_math.h"

namespace isomer {
ISOMER_VECTORISED float MaxOf(const float* x, int64_t n) {
  float lines[kLines];
  std::fill_n(lines, kLines, x[0]);
  int64_t j = 0;
  for (; j + kLines <= n; j += kLines) {
    for (int64_t i = 0; i < kLines; ++i) lines[i] = std::max(lines[i], x[j + i]);
  }
  for (; j < n; ++j) lines[0] = std::max(lines[0], x[j]);
  float max = lines[0];
  for (int64_t i = 1; i < kLines; ++i) max = std::max(max, lines[i]);
  return max;
}

ISOMER_VECTORISED void AddInDouble(const float* x, int64_t n, double* sums) {
  for (int64_t j = 0; j < n; ++j) sums[j] += x[j];
}

SoftmaxSums SumsOfSoftmax(const float* x, int64_t n) {
  const float max = MaxOf(x, n);
  return {max, SumOfExp(x, max, n)};
}

SoftmaxSums Softmax(const float* x, int64_t n, float* y) {
  const float max = MaxOf(x, n), sum = ExpAndSum(x, max, n, y);
  Apply([sum](float p) { return p / sum; }, n, y, y);
  return {max, sum};
}

void ExpOfShifted(const float* x, float shift, float factor, int64_t n, float* y) {
  Apply([=](float x) { return factor * Exp(x - shift); }, n, y, x);
}

void SoftmaxGradient(const float* y, const float* g, int64_t n, float* dx) {
  const float dot = static_cast<float>(
      LineSums<1>(n, [=](int64_t j) { return std::array<float, 1>{g[j] * y[j]}; })[0]);
  Apply([dot](float y, float g) { return y * (g - dot); }, n, dx, y, g);
}

ISOMER_VECTORISED float SumOfExp(const float* x, float shift, int64_t n) {
  float lines[kLines] = {};
  int64_t j = 0;
  for (; j + kLines <= n; j += kLines) {
    for (int64_t i = 0; i < kLines; ++i) lines[i] += Exp(x[j + i] - shift);
  }
  for (; j < n; ++j) lines[0] += Exp(x[j] - shift);
  float sum = 0;
  for (int64_t i = 0; i < kLines; ++i) sum += lines[i];
  return sum;
}

ISOMER_VECTORISED float ExpAndSum(const float* x, float shift, int64_t n, float* y) {
  float lines[kLines] = {};
  int64_t j = 0;
  for (; j + kLines <= n; j += kLines) {
    for (int64_t i = 0; i < kLines; ++i) lines[i] += y[j + i] = Exp(x[j + i] - shift);
  }
  for (; j < n; ++j) lines[0] += y[j] = Exp(x[j] - shift);
  float sum = 0;
  for (int64_t i = 0; i < kLines; ++i) sum += lines[i];
  return sum;
}

}  // namespace isomer
