#include "runtime/cpu/fp8_gemm.h"

#include <algorithm>
#include <cmath>

#include "runtime/cpu/gemm.h"
#include "runtime/device/vectorised.h"

namespace isomer {
namespace {

// Below it, the quotient of a format's largest number by it is no float.
constexpr float kLeastMagnitude = 0x1p-100f;

struct Fp8Scale {
  float inverse = 0, scale = 0;
  Fp8Scale(Float8Format format, float largest) {
    if (largest < kLeastMagnitude) return;
    inverse = Float8Max(format) / largest;
    scale = largest / Float8Max(format);
  }
};

// The comparison is false for a NaN, which has no magnitude.
float LargerOf(float largest, float value) {
  const float magnitude = std::abs(value);
  return largest < magnitude ? magnitude : largest;
}

float LargestOf(const float* values, int64_t count) {
  // Side by side, so that the loop vectorises: floats may not be compared in another order.
  constexpr int64_t kLanes = 16;
  float lanes[kLanes] = {};
  int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    for (int64_t l = 0; l < kLanes; ++l) lanes[l] = LargerOf(lanes[l], values[i + l]);
  }
  for (; i < count; ++i) lanes[0] = LargerOf(lanes[0], values[i]);
  float largest = 0;
  for (float lane : lanes) largest = std::max(largest, lane);
  return largest;
}

template <Float8Format kFormat>
void RoundWithScale(const Fp8Scale& scale, int64_t count, const float* from, float* to) {
  const float inverse = scale.inverse, back = scale.scale;
  Apply([=](float x) { return RoundToFloat8<kFormat>(x * inverse) * back; }, count, to, from);
}

// A scale for each `length` neighbours in memory.
template <Float8Format kFormat>
void RoundRuns(int64_t count, int64_t length, const float* from, float* to) {
  for (int64_t begin = 0; begin < count; begin += length) {
    const int64_t size = std::min(length, count - begin);
    const Fp8Scale scale(kFormat, LargestOf(from + begin, size));
    RoundWithScale<kFormat>(scale, size, from + begin, to + begin);
  }
}

// A scale for each column of these rows.
template <Float8Format kFormat>
void RoundColumns(int64_t rows, int64_t columns, const float* from, float* to, float* scales) {
  float *inverse = scales, *back = scales + columns;
  std::fill_n(back, columns, 0.0f);
  for (int64_t r = 0; r < rows; ++r) {
    Apply([](float largest, float value) { return LargerOf(largest, value); }, columns, back, back,
          from + r * columns);
  }
  for (int64_t c = 0; c < columns; ++c) {
    const Fp8Scale scale(kFormat, back[c]);
    inverse[c] = scale.inverse;
    back[c] = scale.scale;
  }
  for (int64_t r = 0; r < rows; ++r) {
    const auto round = [](float x, float by, float scale) {
      return RoundToFloat8<kFormat>(x * by) * scale;
    };
    Apply(round, columns, to + r * columns, from + r * columns, inverse, back);
  }
}

template <Float8Format kFormat>
void RoundMatrix(Fp8Scaling scaling, SumDim sums, int64_t rows, int64_t columns, const float* from,
                 float* to, float* scales) {
  if (scaling == Fp8Scaling::kTensor) {
    RoundRuns<kFormat>(rows * columns, std::max<int64_t>(rows * columns, 1), from, to);
    return;
  }
  const bool in_blocks = scaling == Fp8Scaling::kBlock;
  if (sums == SumDim::kColumns) {
    const int64_t length = in_blocks ? std::min(kFp8BlockSize, columns) : columns;
    for (int64_t r = 0; r < rows; ++r) {
      RoundRuns<kFormat>(columns, length, from + r * columns, to + r * columns);
    }
    return;
  }
  const int64_t height = in_blocks ? kFp8BlockSize : std::max<int64_t>(rows, 1);
  for (int64_t r = 0; r < rows; r += height) {
    RoundColumns<kFormat>(std::min(height, rows - r), columns, from + r * columns, to + r * columns,
                          scales);
  }
}

}  // namespace

void RoundToFp8(Float8Format format, Fp8Scaling scaling, SumDim sums, int64_t rows, int64_t columns,
                const float* from, float* to, float* scales) {
  if (format == Float8Format::kE4M3) {
    RoundMatrix<Float8Format::kE4M3>(scaling, sums, rows, columns, from, to, scales);
  } else {
    RoundMatrix<Float8Format::kE5M2>(scaling, sums, rows, columns, from, to, scales);
  }
}

CallGemm::CallGemm(const Operator& op, int64_t m, int64_t n, int64_t k, WorkspacePlan* workspace)
    : scaling_(Fp8ScalingOf(op)) {
  if (scaling_ == Fp8Scaling::kNone) return;
  // Any two of the three matrices are multiplied.
  const int64_t most = std::max({m * k, k * n, m * n}), least = std::min({m * k, k * n, m * n});
  larger_ = workspace->Add<float>(most);
  smaller_ = workspace->Add<float>(m * k + k * n + m * n - most - least);
  scales_ = workspace->Add<float>(2 * std::max({m, n, k}));
}

absl::Status CallGemm::operator()(bool transpose_a, bool transpose_b, int64_t m, int64_t n,
                                  int64_t k, const float* a, const float* b, float beta, float* c,
                                  char* workspace, Float8Format a_format,
                                  Float8Format b_format) const {
  if (scaling_ != Fp8Scaling::kNone) {
    const bool a_is_larger = m * k >= k * n;
    float* const rounded_a = (a_is_larger ? larger_ : smaller_).In(workspace);
    float* const rounded_b = (a_is_larger ? smaller_ : larger_).In(workspace);
    float* const scales = scales_.In(workspace);
    RoundToFp8(a_format, scaling_, transpose_a ? SumDim::kRows : SumDim::kColumns,
               transpose_a ? k : m, transpose_a ? m : k, a, rounded_a, scales);
    RoundToFp8(b_format, scaling_, transpose_b ? SumDim::kColumns : SumDim::kRows,
               transpose_b ? n : k, transpose_b ? k : n, b, rounded_b, scales);
    a = rounded_a;
    b = rounded_b;
  }
  return Gemm(transpose_a, transpose_b, m, n, k, 1, a, b, beta, c);
}

}  // namespace isomer
