#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/pcg/operators/run_operator.h"

namespace isomer {
namespace {

using testing::HasSubstr;

Tensor Seed(double seed) { return Filled({}, {seed}); }

TEST(Dropout, KeepsAShareAndScalesIt) {
  const Tensor y = OutputOf("dropout(rate=0.25)", {Tensor({100, 200}, 3.0), Seed(1)});
  const int64_t zeros = std::count(y.data.begin(), y.data.end(), 0.0);
  // Of 20,000, a quarter; the standard deviation is 61.
  EXPECT_NEAR(zeros, 5000, 5 * 61);
  EXPECT_EQ(std::count(y.data.begin(), y.data.end(), 4.0), 20000 - zeros);
}

TEST(Dropout, MaskIsThatOfSeedPlusSalt) {
  const Tensor x({8, 8}, 1.0);
  const Tensor y = OutputOf("dropout(rate=0.5)", {x, Seed(1)});
  EXPECT_NE(y.data, OutputOf("dropout(rate=0.5)", {x, Seed(2)}).data);
  EXPECT_EQ(OutputOf("dropout(rate=0.5)", {x, Seed(2)}).data,
            OutputOf("dropout(rate=0.5,salt=1)", {x, Seed(1)}).data);
  EXPECT_EQ(OutputOf("dropout(rate=0.0)", {x, Seed(1)}).data, x.data);
}

TEST(Dropout, MaskIsTheSameForEveryPartition) {
  const std::vector<Tensor> operands = {Tensor({4, 8}, 1.0), Seed(5)};
  const Tensor whole = OutputOf("dropout(rate=0.5)", operands);
  const Declaration d = DeclarationFor("dropout(rate=0.5)", operands);
  for (const std::vector<int64_t>& degrees : {std::vector<int64_t>{4, 1}, {1, 2}, {2, 4}, {4, 8}}) {
    for (int64_t i = 0; i < degrees[0]; ++i) {
      for (int64_t j = 0; j < degrees[1]; ++j) {
        const IterationBox box = TaskBox(d, degrees, {i, j});
        const Tensor piece = (*Evaluate<double>(d, box, PointersTo(operands)))[0];
        for (int64_t e = 0; e < piece.size(); ++e) {
          const int64_t row = piece.origin[0] + e / piece.shape[1];
          const int64_t column = piece.origin[1] + e % piece.shape[1];
          EXPECT_EQ(piece.data[e], whole.data[row * 8 + column]);
        }
      }
    }
  }
}

TEST(Dropout, IsLinearInTheValueOnly) {
  const Declaration d = *DeclareText("dropout(rate=0.5)", {{4, 8}, {}});
  EXPECT_TRUE(d.IsLinearIn({true, false}));
  EXPECT_FALSE(d.IsLinearIn({true, true}));
}

TEST(Dropout, RefusesRatesThatKeepNothing) {
  EXPECT_THAT(ErrorOf("dropout(rate=1.0)", {{4}, {}}), HasSubstr("rate 1 is not in [0, 1)"));
  EXPECT_THAT(ErrorOf("dropout(rate=-0.5)", {{4}, {}}), HasSubstr("rate -0.5"));
  EXPECT_THAT(ErrorOf("dropout(rate=0.5)", {{4}, {1}}), HasSubstr("rank 1, not 0"));
}

}  // namespace
}  // namespace isomer
