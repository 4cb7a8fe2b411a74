#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/pcg/operators/run_operator.h"

namespace isomer {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

const Tensor kTable = Filled({3, 2}, {10, 11, 20, 21, 30, 31});

TEST(LookUp, ByHand) {
  EXPECT_THAT(OutputOf("embedding_bag", {kTable, Filled({2, 2}, {0, 2, 1, 1})}).data,
              ElementsAre(40, 42, 40, 42));
  EXPECT_THAT(OutputOf("embedding_bag(mean=1)", {kTable, Filled({1, 2}, {0, 2})}).data,
              ElementsAre(20, 21));
  const Tensor y = OutputOf("gather(axis=1)", {kTable, Filled({2, 1}, {1, 0})});
  EXPECT_THAT(y.shape, ElementsAre(3, 2, 1));
  EXPECT_THAT(y.data, ElementsAre(11, 10, 21, 20, 31, 30));
  EXPECT_THAT(OutputOf("gather(axis=0)", {kTable, Filled({}, {2})}).data, ElementsAre(30, 31));
  EXPECT_THAT(OutputOf("gather_elements(axis=0)", {kTable, Filled({1, 2}, {2, 0})}).data,
              ElementsAre(30, 11));
  EXPECT_THAT(
      OutputOf("gather_elements(axis=1)", {kTable, Filled({2, 3}, {0, 1, 1, 1, 0, 0})}).data,
      ElementsAre(10, 11, 11, 21, 20, 20));
  EXPECT_THAT(OutputOf("one_hot(depth=3)", {Filled({2}, {2, 0})}).data,
              ElementsAre(0, 0, 1, 1, 0, 0));
  EXPECT_THAT(OutputOf("one_hot(depth=3,axis=0)", {Filled({2}, {2, 0})}).shape, ElementsAre(3, 2));
}

TEST(ScatterElements, ByHand) {
  auto scatter = [](const char* call, std::vector<double> indices, std::vector<double> updates) {
    return OutputOf(call, {Filled({4}, {1, 2, 3, 4}), Filled({3}, std::move(indices)),
                           Filled({3}, std::move(updates))})
        .data;
  };
  EXPECT_THAT(scatter("scatter_elements(axis=0)", {3, 0, 1}, {7, 8, 9}), ElementsAre(8, 9, 3, 7));
  // Two at one place: the last counts, or both do.
  EXPECT_THAT(scatter("scatter_elements(axis=0)", {2, 0, 2}, {7, 8, 9}), ElementsAre(8, 2, 9, 4));
  EXPECT_THAT(scatter("scatter_elements(axis=0,reduction=1)", {2, 0, 2}, {7, 8, 9}),
              ElementsAre(9, 2, 19, 4));
  EXPECT_THAT(scatter("scatter_elements(axis=0,reduction=2)", {2, 0, 2}, {7, 8, 9}),
              ElementsAre(8, 2, 189, 4));
  EXPECT_THAT(scatter("scatter_elements(axis=0,reduction=3)", {2, 0, 2}, {7, -8, 9}),
              ElementsAre(1, 2, 9, 4));
  EXPECT_THAT(scatter("scatter_elements(axis=0,reduction=4)", {2, 0, 2}, {7, -8, 1}),
              ElementsAre(-8, 2, 1, 4));
  // Fewer rows of updates than of the tensor: the others stay.
  EXPECT_THAT(
      OutputOf("scatter_elements(axis=1)", {kTable, Filled({2, 1}, {1, 0}), Filled({2, 1}, {5, 6})})
          .data,
      ElementsAre(10, 5, 6, 21, 30, 31));
}

// Each batch looks up rows of its own; the second sums them with weights.
TEST(GatherRows, ByHand) {
  const Tensor x = Filled({2, 2, 2}, {1, 2, 3, 4, 5, 6, 7, 8});
  EXPECT_THAT(OutputOf("gather_rows", {x, Filled({2, 3}, {1, 1, 0, 0, 1, 0})}).data,
              ElementsAre(3, 4, 3, 4, 1, 2, 5, 6, 7, 8, 5, 6));
  EXPECT_THAT(OutputOf("gather_rows", {x, Filled({2}, {1, 0})}).data, ElementsAre(3, 4, 5, 6));
  EXPECT_THAT(
      OutputOf("gather_sum", {x, Filled({2, 1, 2}, {1, 0, 0, 0}), Filled({2, 1, 2}, {10, 1, 2, 0})})
          .data,
      ElementsAre(31, 42, 10, 12));
}

// With two dims of batches.
TEST(GatherRows, OfGroups) {
  const Tensor x = Filled({2, 1, 2, 2}, {1, 2, 3, 4, 5, 6, 7, 8});
  const Tensor y = OutputOf("gather_rows", {x, Filled({2, 1, 3}, {1, 1, 0, 0, 1, 0})});
  EXPECT_THAT(y.shape, ElementsAre(2, 1, 3, 2));
  EXPECT_THAT(y.data, ElementsAre(3, 4, 3, 4, 1, 2, 5, 6, 7, 8, 5, 6));
  EXPECT_THAT(OutputOf("gather_sum",
                       {x, Filled({2, 1, 1, 2}, {1, 0, 0, 0}), Filled({2, 1, 1, 2}, {10, 1, 2, 0})})
                  .data,
              ElementsAre(31, 42, 10, 12));
}

TEST(GatherRows, Errors) {
  EXPECT_THAT(ErrorOf("gather_rows", {{2, 5, 3, 4}, {2, 4, 4}}), HasSubstr("dim b1"));
  EXPECT_THAT(ErrorOf("gather_rows", {{2, 3}, {2, 3}}), HasSubstr("rank"));
  EXPECT_THAT(ErrorOf("gather_sum", {{2, 5, 3, 4}, {2, 5}, {2, 5}}), HasSubstr("rank"));
  EXPECT_THAT(ErrorOf("gather_rows", {{2, 3, 4}, {3, 4}}), HasSubstr("dim b"));
  EXPECT_THAT(ErrorOf("gather_sum", {{2, 3, 4}, {2, 4}, {2, 3}}), HasSubstr("dim i1"));
}

// The middle row by the first matrix, the others by the second.
TEST(GatherMatMul, ByHand) {
  const Tensor x = Filled({3, 2}, {1, 2, 3, 4, 5, 6});
  const Tensor matrices = Filled({2, 2, 2}, {1, 0, 0, 1, 0, 10, 100, 0});
  EXPECT_THAT(OutputOf("gather_matmul", {x, matrices, Filled({3}, {1, 0, 1})}).data,
              ElementsAre(200, 10, 3, 4, 600, 50));
}

TEST(GatherMatMul, IsSplitByRowsColumnsMatricesAndTerms) {
  const Declaration d = *DeclareText("gather_matmul", {{4, 8, 6}, {2, 6, 10}, {4, 8}});
  EXPECT_THAT(PartitionableDims(d), ElementsAre("i0", "i1", "n", "e", "k"));
  EXPECT_TRUE(d.IsLinearIn({true, false, false}));
  EXPECT_TRUE(d.IsLinearIn({false, true, false}));
  EXPECT_FALSE(d.IsLinearIn({true, true, false}));
}

TEST(LookUp, TablesAreSplitByRowsAndColumns) {
  EXPECT_THAT(PartitionableDims(*DeclareText("embedding_bag", {{4, 6}, {2, 8}})),
              ElementsAre("b", "h", "l", "v"));
  EXPECT_THAT(PartitionableDims(*DeclareText("gather(axis=0)", {{4, 6}, {2}})),
              ElementsAre("j0", "v", "i1"));
  EXPECT_THAT(PartitionableDims(*DeclareText("gather_elements(axis=1)", {{4, 6}, {4, 2}})),
              ElementsAre("i0", "i1", "v"));
  EXPECT_THAT(PartitionableDims(*DeclareText("gather_elements(axis=1)", {{4, 6}, {2, 2}})),
              ElementsAre("i1", "v"));
  EXPECT_THAT(PartitionableDims(*DeclareText("scatter_elements(axis=1)", {{4, 6}, {4, 2}, {4, 2}})),
              ElementsAre("p0", "p1"));
  // Nothing in the types of the operands would tell the degree of the new dim.
  EXPECT_THAT(PartitionableDims(*DeclareText("one_hot(depth=4)", {{6}})), ElementsAre("i0"));
}

TEST(LookUp, PassesPartialsOfTheTableThrough) {
  EXPECT_TRUE(DeclareText("gather(axis=0)", {{4, 6}, {2}})->IsLinearIn({true, false}));
  const Declaration add = *DeclareText("scatter_elements(axis=0,reduction=1)", {{4}, {2}, {2}});
  EXPECT_TRUE(add.IsLinearIn({true, false, true}));
  EXPECT_FALSE(add.IsLinearIn({true, false, false}));
  EXPECT_FALSE(DeclareText("scatter_elements(axis=0,reduction=2)", {{4}, {2}, {2}})
                   ->IsLinearIn({true, false, true}));
}

TEST(LookUp, RefusesShapesThatDoNotFit) {
  EXPECT_THAT(ErrorOf("embedding_bag", {{4, 6}, {2}}), HasSubstr("operand 1 has rank 1, not 2"));
  EXPECT_THAT(ErrorOf("gather(axis=2)", {{4, 6}, {2}}), HasSubstr("axis 2"));
  EXPECT_THAT(ErrorOf("gather_elements(axis=0)", {{4, 6}, {2}}), HasSubstr("rank 1, not 2"));
  EXPECT_THAT(ErrorOf("gather_elements(axis=0)", {{4, 6}, {2, 7}}),
              HasSubstr("i1 is 6 in operand 0 and 7 in operand 1"));
  EXPECT_THAT(ErrorOf("scatter_elements(axis=0)", {{4, 6}, {2, 6}, {3, 6}}),
              HasSubstr("i0 is 2 in operand 1 and 3 in operand 2"));
  EXPECT_THAT(ErrorOf("scatter_elements(axis=0,reduction=5)", {{4}, {2}, {2}}),
              HasSubstr("reduction 5"));
  EXPECT_THAT(ErrorOf("gather_matmul", {{4, 6}, {6, 8}, {4}}), HasSubstr("operand 1 has rank 2"));
  EXPECT_THAT(ErrorOf("gather_matmul", {{4, 6}, {2, 6, 8}, {2, 4}}),
              HasSubstr("operand 0 has rank 2, not 3"));
  EXPECT_THAT(ErrorOf("gather_matmul", {{4, 6}, {2, 6, 8}, {2}}),
              HasSubstr("i0 is 4 in operand 0 and 2 in operand 2"));
  EXPECT_THAT(ErrorOf("gather_matmul", {{4, 6}, {2, 5, 8}, {4}}),
              HasSubstr("k is 6 in operand 0 and 5 in operand 1"));
  EXPECT_THAT(ErrorOf("one_hot(depth=0)", {{4}}), HasSubstr("depth 0"));
  EXPECT_THAT(ErrorOf("one_hot(depth=2,axis=2)", {{4}}), HasSubstr("axis 2"));
}

}  // namespace
}  // namespace isomer
