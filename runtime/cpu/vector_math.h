// exp and its kin without branches and calls, so that loops over them are vectorised; and sums.
#ifndef ISOMER_RUNTIME_CPU_VECTOR_MATH_H_
#define ISOMER_RUNTIME_CPU_VECTOR_MATH_H_

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>

#include "runtime/device/vectorised.h"

namespace isomer {

// exp(x), relatively within 2e-7; 0 below -104, infinite above 88.73, NaN of NaN. Cephes' expf:
// with x = n log 2 + r, |r| <= log 2 / 2, a polynomial in r, times 2^n.
ISOMER_IN_LOOP float Exp(float x) {
  x = std::min(std::max(x, -104.0f), 88.8f);
  constexpr float kRound = 12582912.0f;  // 1.5 * 2^23: sums with it are whole numbers
  const float n = (x * 1.44269504088896341f + kRound) - kRound;
  float r = x - n * 0.693359375f;
  r -= n * -2.12194440e-4f;
  float p = 1.9875691500e-4f;
  p = p * r + 1.3981999507e-3f;
  p = p * r + 8.3334519073e-3f;
  p = p * r + 4.1665795894e-2f;
  p = p * r + 1.6666665459e-1f;
  p = p * r + 5.0000001201e-1f;
  p = p * r * r + r + 1;
  // In two factors, as 2^n may be none of float's normal numbers.
  const int32_t exponent = static_cast<int32_t>(n), half = exponent >> 1;
  return p * std::bit_cast<float>((half + 127) << 23) *
         std::bit_cast<float>((exponent - half + 127) << 23);
}

ISOMER_IN_LOOP float Logistic(float x) { return 1 / (1 + Exp(-x)); }

// Relatively within 3e-7: the series where the quotient would cancel.
ISOMER_IN_LOOP float Tanh(float x) {
  const float square = x * x;
  const float series =
      x * (1 + square * (-1.0f / 3 + square * (2.0f / 15 + square * (-17.0f / 315))));
  const float falling = Exp(-2 * std::abs(x));
  const float quotient = std::copysign((1 - falling) / (1 + falling), x);
  return std::abs(x) < 0.15f ? series : quotient;
}

// (1 + erf(x / sqrt 2)) / 2, relatively within 3e-6 above -5. By a Chebyshev approximation of erfc
// (Press et al., "Numerical Recipes in C", section 6.2, erfcc), which does not cancel where it is
// small.
ISOMER_IN_LOOP float NormalCdf(float x) {
  const float z = std::abs(x) * 0.70710678118654752f, t = 1 / (1 + 0.5f * z);
  float p = 0.17087277f;
  p = p * t - 0.82215223f;
  p = p * t + 1.48851587f;
  p = p * t - 1.13520398f;
  p = p * t + 0.27886807f;
  p = p * t - 0.18628806f;
  p = p * t + 0.09678418f;
  p = p * t + 0.37409196f;
  p = p * t + 1.00002368f;
  p = p * t - 1.26551223f;
  const float half_erfc = 0.5f * t * Exp(p - z * z);
  return x < 0 ? half_erfc : 1 - half_erfc;
}

// What is computed in double has no hurry.
inline double Exp(double x) { return std::exp(x); }
inline double Tanh(double x) { return std::tanh(x); }
inline double Logistic(double x) { return 0.5 * (std::tanh(0.5 * x) + 1); }
inline double NormalCdf(double x) { return 0.5 * std::erfc(-x * 0.70710678118654752); }

// Sums and maxima are made in so many lines, and these at the end: additions of floats may not be
// exchanged, so that a compiler would make one line of them, each of which waits for the last.
inline constexpr int64_t kLines = 32;

// The sums of the N floats that f(0), .., f(n - 1) return, in double.
template <size_t N, typename F>
ISOMER_VECTORISED std::array<double, N> LineSums(int64_t n, F f) {
  double lines[N][kLines] = {};
  int64_t j = 0;
  for (; j + kLines <= n; j += kLines) {
    for (int64_t i = 0; i < kLines; ++i) {
      const std::array<float, N> terms = f(j + i);
      for (size_t t = 0; t < N; ++t) lines[t][i] += terms[t];
    }
  }
  for (; j < n; ++j) {
    const std::array<float, N> terms = f(j);
    for (size_t t = 0; t < N; ++t) lines[t][0] += terms[t];
  }
  std::array<double, N> sums = {};
  for (size_t t = 0; t < N; ++t) {
    for (double line : lines[t]) sums[t] += line;
  }
  return sums;
}

// REQUIRES: n > 0.
float MaxOf(const float* x, int64_t n);
// In double.
inline double LineSum(const float* x, int64_t n) {
  return LineSums<1>(n, [x](int64_t j) { return std::array<float, 1>{x[j]}; })[0];
}
// sums_j += x_j
void AddInDouble(const float* x, int64_t n, double* sums);
// Of a row, whose j-th has the probability exp(x_j - maximum) / sum. Saved so for gradients.
struct SoftmaxSums {
  float maximum = 0, sum = 1;
};
// REQUIRES of both: n > 0.
SoftmaxSums SumsOfSoftmax(const float* x, int64_t n);
// y = softmax(x); y may be x.
SoftmaxSums Softmax(const float* x, int64_t n, float* y);
// y_j = factor exp(x_j - shift); y may be x.
void ExpOfShifted(const float* x, float shift, float factor, int64_t n, float* y);
// dx_j = y_j (g_j - sum_i g_i y_i), for y = softmax(x). dx may be g.
void SoftmaxGradient(const float* y, const float* g, int64_t n, float* dx);
// The sum of exp(x_j - shift).
float SumOfExp(const float* x, float shift, int64_t n);
// y_j = exp(x_j - shift), which are summed; y may be x.
float ExpAndSum(const float* x, float shift, int64_t n, float* y);

}  // namespace isomer

#endif  // ISOMER_RUNTIME_CPU_VECTOR_MATH_H_
