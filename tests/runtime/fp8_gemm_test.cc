// Rounding matrices to 8 bits, and products of them.
#include "runtime/cpu/fp8_gemm.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "pcg/ir/type_inference.h"
#include "runtime/cpu/cpu_backend.h"
#include "runtime/device/backend.h"

namespace isomer {
namespace {

constexpr Fp8Scaling kAllScalings[] = {Fp8Scaling::kTensor, Fp8Scaling::kRow, Fp8Scaling::kBlock};
constexpr float kNoNumber = std::numeric_limits<float>::quiet_NaN();
constexpr float kNoLimit = std::numeric_limits<float>::infinity();

std::vector<float> InFp8(Float8Format format, Fp8Scaling scaling, SumDim sums, int64_t rows,
                         int64_t columns, const std::vector<float>& from) {
  std::vector<float> to(from.size()), scales(2 * columns + 2);
  RoundToFp8(format, scaling, sums, rows, columns, from.data(), to.data(), scales.data());
  return to;
}

std::vector<float> NumbersOfAllSizes(int64_t count, uint64_t seed) {
  std::mt19937_64 random(seed);
  std::normal_distribution<float> normal;
  std::vector<float> numbers(count);
  for (float& number : numbers) number = normal(random) * std::exp2(4 * normal(random));
  return numbers;
}

// Number (r, c) of `from`, by the definition: over all numbers with the same scale.
float ByDefinition(Float8Format format, Fp8Scaling scaling, SumDim sums, int64_t rows,
                   int64_t columns, const std::vector<float>& from, int64_t r, int64_t c) {
  float largest = 0;
  for (int64_t i = 0; i < rows; ++i) {
    for (int64_t j = 0; j < columns; ++j) {
      const bool is_in_line = sums == SumDim::kColumns ? i == r : j == c;
      const bool is_in_block = sums == SumDim::kColumns ? j / kFp8BlockSize == c / kFp8BlockSize
                                                        : i / kFp8BlockSize == r / kFp8BlockSize;
      if (scaling != Fp8Scaling::kTensor && !is_in_line) continue;
      if (scaling == Fp8Scaling::kBlock && !is_in_block) continue;
      largest = std::max(largest, std::abs(from[i * columns + j]));
    }
  }
  const float x = from[r * columns + c] * (Float8Max(format) / largest);
  const float rounded = format == Float8Format::kE4M3 ? static_cast<float>(Float8E4M3(x))
                                                      : static_cast<float>(Float8E5M2(x));
  return rounded * (largest / Float8Max(format));
}

TEST(RoundToFp8, IsTheNearestNumberTimesTheScaleOfItsTensorRowOrBlock) {
  for (const auto& [rows, columns] : {std::pair<int64_t, int64_t>(3, 300), {300, 3}, {130, 17}}) {
    const std::vector<float> from = NumbersOfAllSizes(rows * columns, 7);
    for (Fp8Scaling scaling : kAllScalings) {
      for (Float8Format format : {Float8Format::kE4M3, Float8Format::kE5M2}) {
        for (SumDim sums : {SumDim::kRows, SumDim::kColumns}) {
          const std::vector<float> to = InFp8(format, scaling, sums, rows, columns, from);
          for (int64_t r = 0; r < rows; r += 7) {
            for (int64_t c = 0; c < columns; ++c) {
              ASSERT_EQ(to[r * columns + c],
                        ByDefinition(format, scaling, sums, rows, columns, from, r, c))
                  << rows << "x" << columns << " " << Fp8ScalingName(scaling) << " " << r << ","
                  << c;
            }
          }
        }
      }
    }
  }
}

TEST(RoundToFp8, ZerosStayZerosAndTheLargestStaysAsItIs) {
  for (Fp8Scaling scaling : kAllScalings) {
    for (SumDim sums : {SumDim::kRows, SumDim::kColumns}) {
      const std::vector<float> zeros(6, 0.0f), tiny(6, 1e-40f);
      EXPECT_EQ(InFp8(Float8Format::kE4M3, scaling, sums, 2, 3, zeros), zeros);
      EXPECT_EQ(InFp8(Float8Format::kE5M2, scaling, sums, 2, 3, tiny), zeros);
      const std::vector<float> some = {0, 0, 0, 0, -3.1f, 0};
      const std::vector<float> rounded = InFp8(Float8Format::kE4M3, scaling, sums, 2, 3, some);
      EXPECT_FLOAT_EQ(rounded[4], -3.1f);
      EXPECT_EQ(rounded[0], 0);
      EXPECT_EQ(rounded[3], 0);
      // Neither of the ends of float32 is left.
      const std::vector<float> large(6, 3e38f);
      EXPECT_FLOAT_EQ(InFp8(Float8Format::kE5M2, scaling, sums, 2, 3, large)[2], 3e38f);
    }
  }
}

// What is not finite is seen in the result, and does not become a large number.
TEST(RoundToFp8, WhatIsNotFiniteIsNoNumber) {
  for (Float8Format format : {Float8Format::kE4M3, Float8Format::kE5M2}) {
    for (Fp8Scaling scaling : kAllScalings) {
      for (SumDim sums : {SumDim::kRows, SumDim::kColumns}) {
        const std::vector<float> nan =
            InFp8(format, scaling, sums, 2, 2, {1, kNoNumber, 0.5f, 0.25f});
        EXPECT_TRUE(std::isnan(nan[1]));
        EXPECT_FLOAT_EQ(nan[0], 1);
        const std::vector<float> infinite =
            InFp8(format, scaling, sums, 2, 2, {1, -kNoLimit, 0.5f, 0.25f});
        EXPECT_TRUE(std::isnan(infinite[1]));
      }
    }
  }
}

// A column of small numbers keeps them where it has a scale of its own.
TEST(RoundToFp8, RowsOfTheirOwnScaleDoNotVanishBesideLargeOnes) {
  const std::vector<float> from = {1000, 1e-3f, 900, 2e-3f};
  EXPECT_EQ(InFp8(Float8Format::kE4M3, Fp8Scaling::kTensor, SumDim::kRows, 2, 2, from)[1], 0);
  const std::vector<float> rows =
      InFp8(Float8Format::kE4M3, Fp8Scaling::kRow, SumDim::kRows, 2, 2, from);
  EXPECT_NEAR(rows[1], 1e-3f, 1e-3f / 16);
  EXPECT_NEAR(rows[3], 2e-3f, 1e-9f);
}

// The kernels of a call of x[m,k] by w[k,n] on these numbers: the result, or both gradients.
std::vector<std::vector<float>> RunCall(const Operator& op, bool gradient,
                                        const std::vector<float>& x, const std::vector<float>& w,
                                        const std::vector<float>& dy, int64_t m, int64_t k,
                                        int64_t n) {
  const std::vector<TensorType> types = {SequentialType({m, k}), SequentialType({k, n})};
  const auto sharding = InferSharding(op, types);
  EXPECT_TRUE(sharding.ok()) << sharding.status();
  const KernelCall call = MakeKernelCall(op, *sharding, types, 0, gradient, {true, true});
  const std::unique_ptr<Backend> backend = MakeCpuBackend();
  auto kernel = backend->MakeKernel(call);
  EXPECT_TRUE(kernel.ok()) << kernel.status();
  std::vector<std::vector<float>> results = {std::vector<float>(gradient ? m * k : m * n),
                                             std::vector<float>(gradient ? k * n : 0)};
  std::vector<double> workspace((*kernel)->workspace_bytes() / 8 + 8);
  std::vector<const void*> reads = {x.data(), w.data()};
  if (gradient) reads.insert(reads.end(), {nullptr, dy.data()});
  std::vector<void*> writes = {results[0].data()};
  if (gradient) writes.push_back(results[1].data());
  EXPECT_EQ((*kernel)->Run(reads, writes, workspace.data()), absl::OkStatus());
  return results;
}

// By the definition in pcg/ir/fp8.h: the same kernels in float32, of numbers that are in 8 bits.
TEST(Fp8Kernel, IsTheProductOfRoundedOperands) {
  constexpr int64_t kM = 5, kK = 140, kN = 9;
  const std::vector<float> x = NumbersOfAllSizes(kM * kK, 1), w = NumbersOfAllSizes(kK * kN, 2),
                           dy = NumbersOfAllSizes(kM * kN, 3);
  for (OpKind kind : {OpKind::kMatMul, OpKind::kLinear}) {
    Operator plain(kind);
    ASSERT_EQ(NormalizeAttributes(&plain), absl::OkStatus());
    for (Fp8Scaling scaling : kAllScalings) {
      const Operator op = WithFp8(plain, scaling);
      const auto in = [&](Float8Format format, SumDim sums, int64_t rows, int64_t columns,
                          const std::vector<float>& from) {
        return InFp8(format, scaling, sums, rows, columns, from);
      };
      constexpr Float8Format kForward = Float8Format::kE4M3, kBackward = Float8Format::kE5M2;
      constexpr SumDim kDown = SumDim::kRows, kAlong = SumDim::kColumns;
      EXPECT_EQ(RunCall(op, false, x, w, dy, kM, kK, kN)[0],
                RunCall(plain, false, in(kForward, kAlong, kM, kK, x),
                        in(kForward, kDown, kK, kN, w), dy, kM, kK, kN)[0]);
      const auto gradients = RunCall(op, true, x, w, dy, kM, kK, kN);
      EXPECT_EQ(gradients[0], RunCall(plain, true, x, in(kForward, kAlong, kK, kN, w),
                                      in(kBackward, kAlong, kM, kN, dy), kM, kK, kN)[0]);
      EXPECT_EQ(gradients[1], RunCall(plain, true, in(kForward, kDown, kM, kK, x), w,
                                      in(kBackward, kDown, kM, kN, dy), kM, kK, kN)[1]);
      EXPECT_NE(gradients[1], RunCall(plain, true, x, w, dy, kM, kK, kN)[1]);
    }
  }
}

}  // namespace
}  // namespace isomer
