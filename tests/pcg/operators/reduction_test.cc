#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/pcg/operators/run_operator.h"

namespace isomer {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

const Tensor kSquare = Filled({2, 3}, {3, -1, 2, 4, 4, -5});

TEST(Reduction, ByHand) {
  EXPECT_THAT(OutputOf("reduce_max(axes=[1],keepdims=0)", {kSquare}).data, ElementsAre(3, 4));
  EXPECT_THAT(OutputOf("reduce_min(axes=[0])", {kSquare}).data, ElementsAre(3, -1, -5));
  EXPECT_THAT(OutputOf("reduce_prod(axes=[0,1])", {kSquare}).data, ElementsAre(480));
  EXPECT_THAT(OutputOf("reduce_prod(axes=[0,1])", {kSquare}).shape, ElementsAre(1, 1));
}

TEST(Reduction, GradientOfAProductWithAZero) {
  const Tensor x = Filled({3}, {2, 0, 5});
  const Declaration d = DeclarationFor("reduce_prod(axes=[0],keepdims=0)", {x});
  Tensor gradient({3});
  const Tensor one = Filled({}, {1});
  ASSERT_TRUE(EvaluateGradient<double>(d, FullBox(d), {&x}, {&one}, {&gradient}).ok());
  EXPECT_THAT(gradient.data, ElementsAre(0, 10, 0));
}

// A maximum of pieces is not a sum of partial ones.
TEST(Reduction, OnlySumsAreSplitOverWhatTheyReduce) {
  for (const char* op : {"reduce_sum", "reduce_mean"}) {
    EXPECT_THAT(PartitionableDims(*DeclareText(std::string(op) + "(axes=[1])", {{4, 6}})),
                ElementsAre("i0", "i1"));
  }
  for (const char* op : {"reduce_max", "reduce_min", "reduce_prod"}) {
    EXPECT_THAT(PartitionableDims(*DeclareText(std::string(op) + "(axes=[1])", {{4, 6}})),
                ElementsAre("i0"));
  }
  EXPECT_THAT(PartitionableDims(*DeclareText("argmax(axis=1)", {{4, 6}})), ElementsAre("i0"));
  EXPECT_THAT(PartitionableDims(*DeclareText("topk(k=2)", {{6}})), IsEmpty());
}

TEST(ArgMax, OfEqualOnesTheFirstOrTheLast) {
  const Tensor x = Filled({2, 4}, {1, 7, 7, 0, -3, -3, -3, -3});
  EXPECT_THAT(OutputOf("argmax(axis=1)", {x}).data, ElementsAre(1, 0));
  EXPECT_THAT(OutputOf("argmax(axis=1,last=1)", {x}).data, ElementsAre(2, 3));
  EXPECT_THAT(OutputOf("argmin(axis=-1,keepdims=0)", {x}).data, ElementsAre(3, 0));
  EXPECT_THAT(OutputOf("argmin(axis=0,last=1)", {x}).data, ElementsAre(1, 1, 1, 1));
}

TEST(TopK, TiesGoToTheLowerIndex) {
  const Tensor x = Filled({5}, {2, 9, 2, 9, 1});
  auto top = OutputsOf("topk(k=4)", {x});
  EXPECT_THAT(top[0].data, ElementsAre(9, 9, 2, 2));
  EXPECT_THAT(top[1].data, ElementsAre(1, 3, 0, 2));
  top = OutputsOf("topk(k=3,largest=0)", {x});
  EXPECT_THAT(top[0].data, ElementsAre(1, 2, 2));
  EXPECT_THAT(top[1].data, ElementsAre(4, 0, 2));
}

TEST(CumSum, ByHand) {
  const Tensor x = Filled({4}, {1, 2, 3, 4});
  EXPECT_THAT(OutputOf("cumsum(axis=0)", {x}).data, ElementsAre(1, 3, 6, 10));
  EXPECT_THAT(OutputOf("cumsum(axis=0,exclusive=1)", {x}).data, ElementsAre(0, 1, 3, 6));
  EXPECT_THAT(OutputOf("cumsum(axis=-1,reverse=1)", {x}).data, ElementsAre(10, 9, 7, 4));
  EXPECT_THAT(OutputOf("cumsum(axis=0,exclusive=1,reverse=1)", {x}).data, ElementsAre(9, 7, 4, 0));
  EXPECT_TRUE(DeclareText("cumsum(axis=0)", {{4}})->IsLinearIn({true}));
}

TEST(Reduction, RefusesAxesThatAreNotThere) {
  EXPECT_THAT(ErrorOf("reduce_max(axes=[2])", {{4, 6}}), HasSubstr("axis 2"));
  EXPECT_THAT(ErrorOf("argmax(axis=-3)", {{4, 6}}), HasSubstr("axis -3"));
  EXPECT_THAT(ErrorOf("cumsum(axis=1)", {{4}}), HasSubstr("axis 1"));
  EXPECT_THAT(ErrorOf("topk(k=1,axis=1)", {{4}}), HasSubstr("axis 1"));
  EXPECT_THAT(ErrorOf("topk(k=5)", {{4}}), HasSubstr("k 5 of dim 0 of size 4"));
  EXPECT_THAT(ErrorOf("topk(k=0)", {{4}}), HasSubstr("k 0"));
}

}  // namespace
}  // namespace isomer
