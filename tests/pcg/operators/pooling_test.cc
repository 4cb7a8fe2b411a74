#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "absl/strings/str_cat.h"
#include "tests/pcg/operators/run_operator.h"

namespace isomer {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

TEST(Pool, OneDimByHand) {
  const Tensor x = Filled({1, 1, 5}, {3, 1, -2, 8, 4});
  EXPECT_THAT(OutputOf("max_pool(kernel=[2],stride=[2],padding=[1,0])", {x}).data,
              ElementsAre(3, 1, 8));
  EXPECT_THAT(OutputOf("avg_pool(kernel=[2],stride=[2],padding=[1,0])", {x}).data,
              ElementsAre(3, -0.5, 6));
  EXPECT_THAT(
      OutputOf("avg_pool(kernel=[2],stride=[2],padding=[1,0],count_include_pad=1)", {x}).data,
      ElementsAre(1.5, -0.5, 6));
}

TEST(Pool, ThreeDimsOfFlatWindowsAreOne) {
  Tensor x = Random({2, 3, 8}, 1);
  const Tensor flat = OutputOf("max_pool(kernel=[3],stride=[2],padding=[1,1])", {x});
  x.shape = {2, 3, 1, 8, 1};
  x.origin.resize(5);
  Tensor y = OutputOf("max_pool(kernel=[1,3,1],stride=[1,2,1],padding=[0,1,0,0,1,0])", {x});
  y.shape = flat.shape;
  ExpectClose(y, flat);
}

TEST(Pool, RefusesWindowsOfPaddingAlone) {
  EXPECT_THAT(ErrorOf("max_pool(kernel=[2],stride=[1],padding=[2,0])", {{1, 1, 5}}),
              HasSubstr("padding 2,0 is not less than the kernel, 2"));
  EXPECT_THAT(ErrorOf("max_pool(kernel=[6],stride=[1],padding=[0,0])", {{1, 1, 5}}),
              HasSubstr("kernel spans 6"));
  EXPECT_THAT(ErrorOf("max_pool(kernel=[1,1,1,1],stride=[1],padding=[0,0])", {{1, 1, 5}}),
              HasSubstr("4 dims, not 1 to 3"));
}

// All sizes to 7, windows fewer and more than elements.
TEST(AdaptivePool, WindowsAreTheDefinitionsExhaustively) {
  for (int64_t in = 1; in <= 7; ++in) {
    for (int64_t out = 1; out <= 7; ++out) {
      SCOPED_TRACE(absl::StrCat(in, " -> ", out));
      const Tensor x = Random({1, 2, in}, 1);
      Tensor expected({1, 2, out});
      for (int64_t c = 0; c < 2; ++c) {
        for (int64_t o = 0; o < out; ++o) {
          const int64_t begin = o * in / out, end = ((o + 1) * in + out - 1) / out;
          for (int64_t i = begin; i < end; ++i) {
            expected.data[c * out + o] += x.data[c * in + i] / static_cast<double>(end - begin);
          }
        }
      }
      ExpectClose(OutputOf(absl::StrCat("adaptive_avg_pool(output=[", out, "])"), {x}), expected);
    }
  }
}

TEST(AdaptivePool, DimsAreIndependent) {
  const Tensor x = Random({2, 2, 5, 6}, 1);
  // Rows by hand: 5 into 2 windows are [0,3) and [2,5).
  const Tensor columns = OutputOf("adaptive_avg_pool(output=[5,3])", {x});
  Tensor expected({2, 2, 2, 3});
  for (int64_t nc = 0; nc < 4; ++nc) {
    for (int64_t o = 0; o < 2; ++o) {
      for (int64_t r = 0; r < 3; ++r) {
        for (int64_t i = 0; i < 3; ++i) {
          expected.data[(nc * 2 + o) * 3 + i] += columns.data[(nc * 5 + o * 2 + r) * 3 + i] / 3;
        }
      }
    }
  }
  ExpectClose(OutputOf("adaptive_avg_pool(output=[2,3])", {x}), expected);
}

TEST(AdaptivePool, WindowsSideBySideArePartitionable) {
  EXPECT_THAT(PartitionableDims(*DeclareText("adaptive_avg_pool(output=[2,3])", {{2, 2, 4, 4}})),
              ElementsAre("n", "c", "y"));
}

TEST(AdaptivePool, RefusesSizesThatAreNone) {
  EXPECT_THAT(ErrorOf("adaptive_avg_pool(output=[0])", {{1, 1, 4}}), HasSubstr("0 windows"));
  EXPECT_THAT(ErrorOf("adaptive_avg_pool(output=[])", {{1, 1, 4}}), HasSubstr("0 dims"));
}

}  // namespace
}  // namespace isomer
