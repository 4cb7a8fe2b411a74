// Copies of regions against one element at a time.
#include "runtime/device/moves.h"

#include <gtest/gtest.h>

#include <numeric>
#include <random>
#include <vector>

namespace isomer {
namespace {

int64_t OffsetIn(const Box& box, const std::vector<int64_t>& at) {
  int64_t offset = 0;
  for (size_t i = 0; i < at.size(); ++i) offset = offset * box.shape[i] + at[i] - box.origin[i];
  return offset;
}

// Every element of the region, in order.
std::vector<std::vector<int64_t>> ElementsOf(const Box& region) {
  std::vector<std::vector<int64_t>> elements;
  for (int64_t n = 0; n < region.Volume(); ++n) {
    std::vector<int64_t> at(region.shape.size());
    int64_t rest = n;
    for (int i = static_cast<int>(at.size()) - 1; i >= 0; --i) {
      at[i] = region.origin[i] + rest % region.shape[i];
      rest /= region.shape[i];
    }
    elements.push_back(std::move(at));
  }
  return elements;
}

// Inner dims of which both boxes have the whole are copied as one line: with every mixture of whole
// and cut dims, and dims of one element, the same elements must move as one by one.
TEST(Moves, RegionsOfWholeAndCutDimsMoveTheElementsThatTheyName) {
  std::mt19937 random(1);
  const auto below = [&random](int64_t n) { return static_cast<int64_t>(random() % n); };
  for (int trial = 0; trial < 2000; ++trial) {
    Box region, from, to;
    const int64_t rank = below(5);
    for (int64_t i = 0; i < rank; ++i) {
      region.origin.push_back(3 + below(3));
      region.shape.push_back(1 + below(4));
      for (Box* box : {&from, &to}) {
        const int64_t before = below(2) * below(3), after = below(2) * below(3);
        box->origin.push_back(region.origin[i] - before);
        box->shape.push_back(region.shape[i] + before + after);
      }
    }
    std::vector<int32_t> source(from.Volume()), target(to.Volume(), -1);
    std::iota(source.begin(), source.end(), 0);
    std::vector<int32_t> expected = target;
    for (const auto& at : ElementsOf(region)) {
      expected[OffsetIn(to, at)] = source[OffsetIn(from, at)];
    }
    CopyRegion(region, from, source.data(), to, target.data(), sizeof(int32_t));
    ASSERT_EQ(target, expected) << "trial " << trial;
  }
}

TEST(Moves, OnlyWhatLiesSideBySideIsALine) {
  const Box box = {{0, 0, 0}, {4, 6, 2}};
  EXPECT_EQ(LineOffset(box, box), 0);
  EXPECT_EQ(LineOffset({{2, 0, 0}, {2, 6, 2}}, box), 24);  // rows
  EXPECT_EQ(LineOffset({{1, 3, 0}, {1, 2, 2}}, box), 18);  // a part of one row
  EXPECT_EQ(LineOffset({{1, 3, 0}, {2, 2, 2}}, box), -1);
  EXPECT_EQ(LineOffset({{0, 0, 1}, {1, 6, 1}}, box), -1);
  EXPECT_EQ(LineOffset({{}, {}}, {{}, {}}), 0);
}

}  // namespace
}  // namespace isomer
