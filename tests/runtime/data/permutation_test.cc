#include "runtime/data/permutation.h"

#include <cmath>
#include <set>
#include <vector>

#include "gtest/gtest.h"

namespace isomer {
namespace {

TEST(Permutation, IsOneOfEverySizeUpToABound) {
  for (int64_t size = 1; size <= 300; ++size) {
    const Permutation permutation(size, /*key=*/size * 7);
    std::vector<int> hits(size);
    for (int64_t i = 0; i < size; ++i) ++hits.at(permutation(i));
    for (int64_t i = 0; i < size; ++i) ASSERT_EQ(hits[i], 1) << size << " " << i;
  }
}

TEST(Permutation, KeysDrawDifferentOnes) {
  const Permutation one(1000, 1), other(1000, 2);
  int alike = 0;
  for (int64_t i = 0; i < 1000; ++i) alike += one(i) == other(i);
  EXPECT_LT(alike, 10);
}

// Chi-square of where index i goes over keys: of 15 degrees of freedom, below 50 but once in 10^5.
TEST(Permutation, EveryPlaceIsAsLikely) {
  constexpr int kKeys = 16000, kSize = 16;
  for (int64_t i : {0, 7, 15}) {
    std::vector<int> counts(kSize);
    for (int key = 0; key < kKeys; ++key) ++counts[Permutation(kSize, key)(i)];
    double chi_square = 0;
    for (int count : counts) chi_square += std::pow(count - kKeys / kSize, 2) / (kKeys / kSize);
    EXPECT_LT(chi_square, 50) << i;
  }
}

TEST(Permutation, OfVeryManyRowsTakesNoMemory) {
  for (int64_t size : {int64_t{1} << 40, (int64_t{1} << 62) + 1, INT64_MAX}) {
    const Permutation permutation(size, 3);
    std::set<int64_t> seen;
    for (int64_t i = 0; i < 1000; ++i) {
      const int64_t at = permutation(i);
      ASSERT_GE(at, 0);
      ASSERT_LT(at, size);
      seen.insert(at);
    }
    EXPECT_EQ(seen.size(), 1000);
  }
}

}  // namespace
}  // namespace isomer
