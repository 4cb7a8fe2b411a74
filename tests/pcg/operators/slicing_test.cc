#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "absl/strings/str_cat.h"
#include "tests/pcg/operators/run_operator.h"

namespace isomer {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

TEST(Slice, ByHand) {
  const Tensor x = Filled({6}, {0, 1, 2, 3, 4, 5});
  EXPECT_THAT(OutputOf("slice(starts=[1],sizes=[2],steps=[3])", {x}).data, ElementsAre(1, 4));
  EXPECT_THAT(OutputOf("slice(starts=[5],sizes=[3],steps=[-2])", {x}).data, ElementsAre(5, 3, 1));
  EXPECT_THAT(OutputOf("slice(starts=[2],sizes=[1],steps=[-6])", {x}).data, ElementsAre(2));
}

TEST(Slice, DimsThatAreKeptArePartitionable) {
  const Declaration d =
      *DeclareText("slice(starts=[0,0,3],sizes=[4,5,4],steps=[1,1,-1])", {{4, 6, 4}});
  EXPECT_THAT(PartitionableDims(d), ElementsAre("i0"));
  EXPECT_TRUE(d.IsLinearIn({true}));
}

TEST(Slice, RefusesElementsThatAreNotThere) {
  EXPECT_THAT(ErrorOf("slice(starts=[1],sizes=[6],steps=[1])", {{6}}),
              HasSubstr("dim 0 of size 6 has no 6 elements from 1 in steps of 1"));
  EXPECT_THAT(ErrorOf("slice(starts=[1],sizes=[3],steps=[-1])", {{6}}), HasSubstr("has no 3"));
  EXPECT_THAT(ErrorOf("slice(starts=[-1],sizes=[1],steps=[1])", {{6}}), HasSubstr("from -1"));
  EXPECT_THAT(ErrorOf("slice(starts=[6],sizes=[1],steps=[1])", {{6}}), HasSubstr("from 6"));
  EXPECT_THAT(ErrorOf("slice(starts=[0],sizes=[2],steps=[0])", {{6}}), HasSubstr("steps of 0"));
  EXPECT_THAT(ErrorOf("slice(starts=[0],sizes=[0],steps=[1])", {{6}}), HasSubstr("no 0"));
  EXPECT_THAT(ErrorOf(absl::StrCat("slice(starts=[0],sizes=[2],steps=[",
                                   std::numeric_limits<int64_t>::min(), "])"),
                      {{6}}),
              HasSubstr("steps of -9"));
  EXPECT_THAT(ErrorOf("slice(starts=[0],sizes=[2,2],steps=[1,1])", {{6, 6}}),
              HasSubstr("starts has 1 entries, not 2"));
}

// By NumPy's definitions, element by element, for all paddings of short vectors.
TEST(Pad, ModesAreNumPysExhaustively) {
  for (int64_t n = 1; n <= 4; ++n) {
    Tensor x({n});
    for (int64_t i = 0; i < n; ++i) x.data[i] = 10.0 + static_cast<double>(i);
    for (int mode = 0; mode <= 3; ++mode) {
      const int64_t most = mode == 0 ? 5 : mode == 1 ? n - 1 : n;
      for (int64_t begin = 0; begin <= most; ++begin) {
        for (int64_t end = 0; end <= most; ++end) {
          SCOPED_TRACE(absl::StrCat("size ", n, " mode ", mode, " padding ", begin, ",", end));
          Tensor expected({n + begin + end});
          for (int64_t j = 0; j < expected.size(); ++j) {
            const int64_t at = j - begin;
            const int64_t reflected = at < 0 ? -at : at >= n ? 2 * (n - 1) - at : at;
            const int64_t nearest = std::min(std::max<int64_t>(at, 0), n - 1);
            const int64_t wrapped = (at + 2 * n) % n;
            const bool inside = at >= 0 && at < n;
            expected.data[j] = mode == 0   ? (inside ? x.data[at] : 7.0)
                               : mode == 1 ? x.data[reflected]
                               : mode == 2 ? x.data[nearest]
                                           : x.data[wrapped];
          }
          ExpectClose(OutputOf(absl::StrCat("pad(padding=[", begin, ",", end, "],mode=", mode,
                                            ",value=7.0)"),
                               {x}),
                      expected, 0);
        }
      }
    }
  }
}

TEST(Pad, SeveralDimsAreOneAfterTheOther) {
  const Tensor x = Random({2, 3, 4}, 1);
  for (const char* mode : {"1", "2", "3"}) {
    const Tensor first = OutputOf(absl::StrCat("pad(padding=[1,0,0,0,0,0],mode=", mode, ")"), {x});
    const Tensor second =
        OutputOf(absl::StrCat("pad(padding=[0,0,2,0,0,3],mode=", mode, ")"), {first});
    ExpectClose(OutputOf(absl::StrCat("pad(padding=[1,0,2,0,0,3],mode=", mode, ")"), {x}), second,
                0);
  }
}

TEST(Pad, OnlyZerosKeepItLinearAndEveryModeOfMoving) {
  auto linear = [](const char* mode) {
    return DeclareText(absl::StrCat("pad(padding=[1,2],mode=", mode, ")"), {{4}})
        ->IsLinearIn({true});
  };
  EXPECT_TRUE(linear("0"));
  EXPECT_TRUE(linear("1"));
  EXPECT_TRUE(linear("2"));
  EXPECT_TRUE(linear("3"));
  EXPECT_FALSE(linear("0,value=1.0"));
  EXPECT_THAT(PartitionableDims(*DeclareText("pad(padding=[0,1,0,1],mode=1)", {{4, 6}})),
              ElementsAre("i0"));
}

TEST(Pad, RefusesMoreThanThereIs) {
  EXPECT_THAT(ErrorOf("pad(padding=[4,0],mode=1)", {{4}}),
              HasSubstr("dim 0 of size 4 cannot be padded by 4 and 0 in mode 1"));
  EXPECT_THAT(ErrorOf("pad(padding=[0,5],mode=3)", {{4}}), HasSubstr("by 0 and 5"));
  EXPECT_THAT(ErrorOf("pad(padding=[-1,0],mode=2)", {{4}}), HasSubstr("by -1 and 0"));
  EXPECT_THAT(ErrorOf("pad(padding=[-2,-2])", {{4}}), HasSubstr("by -2 and -2"));
  EXPECT_THAT(ErrorOf("pad(padding=[0,0],mode=4)", {{4}}), HasSubstr("mode 4"));
  EXPECT_THAT(ErrorOf("pad(padding=[0,0,1])", {{4}}), HasSubstr("3 entries, not 2"));
}

TEST(Expand, FollowsNumPysBroadcastTo) {
  const Tensor y = OutputOf("expand(shape=[2,2,3])", {Filled({2, 1}, {1, 2})});
  EXPECT_THAT(y.data, ElementsAre(1, 1, 1, 2, 2, 2, 1, 1, 1, 2, 2, 2));
  // Nothing in the type of the operand would tell the degree of a repeated dim.
  EXPECT_THAT(PartitionableDims(*DeclareText("expand(shape=[2,4,6])", {{4, 1}})),
              ElementsAre("i1"));
  EXPECT_THAT(ErrorOf("expand(shape=[6])", {{4, 1}}), HasSubstr("rank 2, more than shape with 1"));
  EXPECT_THAT(ErrorOf("expand(shape=[3,6])", {{4, 1}}), HasSubstr("dim 0 of size 4"));
  EXPECT_THAT(ErrorOf("expand(shape=[4,1])", {{4, 6}}), HasSubstr("dim 1 of size 6"));
  EXPECT_THAT(ErrorOf("expand(shape=[0,6])", {{6}}), HasSubstr("does not become 0"));
}

TEST(Trilu, ByHand) {
  const Tensor x = Filled({2, 3}, {1, 2, 3, 4, 5, 6});
  EXPECT_THAT(OutputOf("trilu(upper=1)", {x}).data, ElementsAre(1, 2, 3, 0, 5, 6));
  EXPECT_THAT(OutputOf("trilu(upper=0)", {x}).data, ElementsAre(1, 0, 0, 4, 5, 0));
  EXPECT_THAT(OutputOf("trilu(upper=1,k=2)", {x}).data, ElementsAre(0, 0, 3, 0, 0, 0));
  EXPECT_THAT(OutputOf("trilu(upper=0,k=-1)", {x}).data, ElementsAre(0, 0, 0, 4, 0, 0));
  // Infinities beside the triangle do not reach it.
  const double infinity = std::numeric_limits<double>::infinity();
  EXPECT_THAT(OutputOf("trilu(upper=0)", {Filled({1, 2}, {1, infinity})}).data, ElementsAre(1, 0));
  // Each task knows where its piece lies.
  EXPECT_THAT(PartitionableDims(*DeclareText("trilu(upper=1)", {{4, 4}})), ElementsAre("i0", "i1"));
  EXPECT_THAT(ErrorOf("trilu(upper=1)", {{4}}), HasSubstr("rank 1"));
}

}  // namespace
}  // namespace isomer
