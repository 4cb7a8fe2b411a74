// Which dims tasks may go over pieces of, read off statements: those that look as if they could be,
// and cannot.
#include <gtest/gtest.h>

#include "pcg/ir/declaration.h"

namespace isomer {
namespace {

const std::vector<Shape> kMatrix = {{4, 6}};

TEST(PiecesSuffice, OfASumThatIsTheOutput) {
  DeclarationBuilder d(kMatrix);
  const int i = d.Parallel("i", 4), k = d.Sum("k", 6);
  d.OutputSum({i}, {k}, d.In(0, {i, k}));
  const Declaration sum = d.Build();
  EXPECT_TRUE(sum.PiecesSuffice(k));
  EXPECT_TRUE(sum.PiecesSuffice(i));
}

TEST(PiecesSuffice, NotOfASumThatIsSquared) {
  DeclarationBuilder d(kMatrix);
  const int i = d.Parallel("i", 4), k = d.Sum("k", 6);
  const Expr sum = d.Let("S", {i}, Reduction::kSum, {k}, d.In(0, {i, k}));
  d.Output({i}, sum * sum);
  const Declaration square = d.Build();
  EXPECT_FALSE(square.PiecesSuffice(k));
  EXPECT_FALSE(square.IsPartitionable(k));
  EXPECT_TRUE(square.IsPartitionable(i));
}

TEST(PiecesSuffice, OfASumThatIsDividedByWhatDoesNotDependOnIt) {
  DeclarationBuilder d(kMatrix);
  const int i = d.Parallel("i", 4), k = d.Sum("k", 6);
  d.Output({i}, d.Let("S", {i}, Reduction::kSum, {k}, d.In(0, {i, k})) / 3.0);
  EXPECT_TRUE(d.Build().PiecesSuffice(k));
}

// Each task would add the bias: the classic bug.
TEST(PiecesSuffice, NotOfASumToWhichABiasIsAdded) {
  DeclarationBuilder d(std::vector<Shape>{{4, 6}, {4}});
  const int i = d.Parallel("i", 4), k = d.Sum("k", 6);
  const Expr sum = d.Let("S", {i}, Reduction::kSum, {k}, d.In(0, {i, k}));
  d.Output({i}, sum + d.In(1, {i}));
  EXPECT_FALSE(d.Build().PiecesSuffice(k));
}

TEST(PiecesSuffice, NotOfALargestOrAProductAsIfItWereASum) {
  for (const Reduction reduction : {Reduction::kMax, Reduction::kProduct}) {
    DeclarationBuilder d(kMatrix);
    const int i = d.Parallel("i", 4), k = d.Sum("k", 6);
    d.OutputReduced({i}, reduction, {k}, d.In(0, {i, k}));
    EXPECT_FALSE(d.Build().PiecesSuffice(k));
  }
}

TEST(PiecesSuffice, NotOfADimThatAnIntermediateSumsOver) {
  DeclarationBuilder d(kMatrix);
  const int i = d.Parallel("i", 4), j = d.Parallel("j", 6);
  const Expr sum = d.Let("S", {i}, Reduction::kSum, {j}, d.In(0, {i, j}));
  d.Output({i, j}, d.In(0, {i, j}) / sum);
  const Declaration normalised = d.Build();
  EXPECT_TRUE(normalised.IsPartitionable(i));
  EXPECT_FALSE(normalised.IsPartitionable(j));
}

TEST(PiecesSuffice, NotOfADimAtOtherValuesOfWhichAnIntermediateIsRead) {
  DeclarationBuilder d(kMatrix);
  const int i = d.Parallel("i", 4), j = d.Parallel("j", 6);
  d.Let("T", {i, j}, Reduction::kNone, {}, d.In(0, {i, j}));
  Declaration turned = d.Build();
  // Y[i,j] = T[i,5-j]
  turned.accesses.push_back({1, {Index(i), Shifted(Index(j) * -1, 5)}});
  turned.outputs = {{4, 6}};
  turned.statements.push_back(
      {"Y", 0, {Index(i), Index(j)}, Reduction::kNone, {}, {{.op = ScalarOp::kLoad, .access = 2}}});
  EXPECT_TRUE(turned.PiecesSuffice(i));
  EXPECT_FALSE(turned.PiecesSuffice(j));
}

TEST(PiecesSuffice, OfADimWhoseCoordinatesAreUsed) {
  DeclarationBuilder d(kMatrix);
  const int i = d.Parallel("i", 4), j = d.Parallel("j", 6);
  d.Output({i, j}, d.In(0, {i, j}) * Coordinate(j));
  EXPECT_TRUE(d.Build().PiecesSuffice(j));
}

TEST(IsLinearIn, NotWhereAChoiceDependsOnTheOperand) {
  DeclarationBuilder d(kMatrix);
  const int i = d.Parallel("i", 4), j = d.Parallel("j", 6);
  const Expr x = d.In(0, {i, j});
  d.Output({i, j}, Where(x < 0.0, 0.0, x));
  EXPECT_FALSE(d.Build().IsLinearIn({true}));
}

}  // namespace
}  // namespace isomer
