#include "runtime/device/elements.h"

#include <gtest/gtest.h>

#include <limits>
#include <vector>

#include "runtime/device/moves.h"

namespace isomer {
namespace {

std::vector<double> RoundTrip(DataType dtype, const std::vector<double>& values) {
  std::vector<int64_t> buffer(values.size());  // Large enough for any type.
  const int64_t count = static_cast<int64_t>(values.size());
  StoreElements(values.data(), count, dtype, buffer.data());
  std::vector<double> result(values.size());
  LoadElements(dtype, buffer.data(), count, result.data());
  return result;
}

TEST(Elements, IntegersAreTruncatedTowardsZero) {
  const std::vector<double> values = {1.9, -1.9, 0.5, -0.5, 3};
  const std::vector<double> expected = {1, -1, 0, 0, 3};
  EXPECT_EQ(RoundTrip(DataType::kInt32, values), expected);
  EXPECT_EQ(RoundTrip(DataType::kInt64, values), expected);
}

TEST(Elements, IntegersOfFiftyThreeBitsAreExact) {
  const double large = 0x1p53;
  EXPECT_EQ(RoundTrip(DataType::kInt64, {large, large - 1, -large}),
            (std::vector<double>{large, large - 1, -large}));
}

TEST(Elements, IntegersThatDoNotFitAreClamped) {
  const double inf = std::numeric_limits<double>::infinity();
  EXPECT_EQ(RoundTrip(DataType::kInt32, {1e10, -1e10, inf, std::nan("")}),
            (std::vector<double>{0x1p31 - 1, -0x1p31, 0x1p31 - 1, 0}));
  EXPECT_EQ(RoundTrip(DataType::kInt64, {-inf}), std::vector<double>{-0x1p63});
}

TEST(Elements, TruthIsNotZero) {
  EXPECT_EQ(RoundTrip(DataType::kBool, {0, 1, -3, 0.25}), (std::vector<double>{0, 1, 1, 1}));
}

TEST(Elements, FloatsAreRoundedOnceFromDouble) {
  // Just above the middle of 1 and the next bfloat16; a float in between would make it a tie.
  const double above = 1 + 0x1p-8 + 0x1p-40;
  EXPECT_EQ(RoundTrip(DataType::kBFloat16, {above}), std::vector<double>{1 + 0x1p-7});
  const double above16 = 1 + 0x1p-11 + 0x1p-40;
  EXPECT_EQ(RoundTrip(DataType::kFloat16, {above16}), std::vector<double>{1 + 0x1p-10});
}

// 256 + 1/2 + 1/2 in bfloat16 would be 256, one at a time; the sum in float32 is 257, a tie.
TEST(Elements, SumsOfLowPrecisionAreInFloat32) {
  const BFloat16 large(256.0f), one(1.0f), half(0.5f);
  const std::vector<const void*> terms = {&large, &one, &half, &half};
  BFloat16 sum;
  SumElements(DataType::kBFloat16, terms, 1, &sum);
  EXPECT_EQ(static_cast<float>(sum), 258.0f);
  const Box box{{0}, {1}};
  std::vector<MovedPiece> pieces;
  for (const void* term : terms) pieces.push_back({box, box, term});
  BFloat16 moved;
  SumPieces(pieces, box, DataType::kBFloat16, &moved);
  EXPECT_EQ(static_cast<float>(moved), 258.0f);
}

TEST(Elements, SumsOfIntegersAreExact) {
  const int64_t large = int64_t{1} << 60, one = 1;
  int64_t sum = 0;
  SumElements(DataType::kInt64, {&large, &one}, 1, &sum);
  EXPECT_EQ(sum, large + 1);
}

TEST(Elements, PiecesLeaveZeroWhereThereIsNone) {
  const std::vector<int32_t> from = {5, 6};
  std::vector<int32_t> to(4, 99);
  const MovedPiece piece{{{1}, {2}}, {{1}, {2}}, from.data()};
  SumPieces({piece}, {{0}, {4}}, DataType::kInt32, to.data());
  EXPECT_EQ(to, (std::vector<int32_t>{0, 5, 6, 0}));
}

}  // namespace
}  // namespace isomer
