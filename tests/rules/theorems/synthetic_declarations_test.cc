// The theorems of structure.h are of every declaration that meets their premises, not of the
// operators that there are: declarations that no operator has, and that a premise must refuse.
#include <gtest/gtest.h>

#include <set>
#include <string>

#include "rules/theorems/declaration_facts.h"
#include "rules/theorems/theorems.h"

namespace isomer {
namespace {

// y[n] = sum_k w[k] * x[n+k-p] * weight(k), w of `taps` elements.
Declaration Window(int64_t taps, int64_t padding, bool by_coordinate) {
  const Shape shapes[] = {{Extent(8)}, {Extent(taps)}};
  DeclarationBuilder d(shapes);
  const int n = d.Parallel("n", 8 + 2 * padding - taps + 1), k = d.Whole("k", taps);
  Expr term = d.In(1, {k}) * d.In(0, {Shifted(Index(n) + Index(k), -padding)}, Outside::kZero);
  if (by_coordinate) term = term * Coordinate(k);
  d.OutputSum({n}, {k}, term);
  return d.Build();
}

TEST(SyntheticDeclarations, MarginsWidenNoDimWhoseCoordinateCounts) {
  EXPECT_TRUE(SameButForMargins(Window(3, 1, false), Window(5, 2, false), 1));
  // The tap in the middle has the factor 1 in the small window and 2 in the large one.
  EXPECT_FALSE(SameButForMargins(Window(3, 1, true), Window(5, 2, true), 1));
}

// y[n] = max_{k<3} x[n+k-p], inside of x only: with p = 3 the first window has no element.
TEST(SyntheticDeclarations, TheLargestOfNoElementIsNone) {
  const auto pool = [](int64_t padding) {
    DeclarationBuilder d(std::vector<Shape>{{Extent(8)}});
    const int n = d.Parallel("n", 8 + 2 * padding - 2), k = d.Whole("k", 3);
    d.OutputReduced({n}, Reduction::kMax, {k},
                    d.In(0, {Shifted(Index(n) + Index(k), -padding)}, Outside::kSkip));
    return d.Build();
  };
  EXPECT_EQ(MovesElementsOf(pool(2), {true}), Moves::kLargest);
  EXPECT_EQ(MovesElementsOf(pool(3), {true}), Moves::kNothingKnown);
}

// f is max(x, 0) of vectors and exp(x) of matrices.
Declaration Function(const Shape& shape) {
  DeclarationBuilder d(std::vector<Shape>{shape});
  std::vector<Index> at;
  std::vector<int> dims = d.Dims("i", DimKind::kParallel, shape);
  at.assign(dims.begin(), dims.end());
  const Expr x = d.In(0, at);
  d.Output(at, shape.size() == 1 ? Max(x, 0.0) : Apply(ScalarOp::kExp, x));
  return d.Build();
}

// The first row of a matrix, or of a list of such.
Declaration FirstRow(const Shape& matrix) {
  DeclarationBuilder d(std::vector<Shape>{matrix});
  const int i = d.Parallel("i", matrix[1]);
  d.Output({i}, d.In(0, {Index(), i}));
  return d.Build();
}

TEST(SyntheticDeclarations, AFunctionWithAnotherBodyAtAnotherShapeDoesNotCommute) {
  const Shape matrix = {Extent(4), Extent(6)}, row = {Extent(6)};
  const Operator f(OpKind::kRelu), op(OpKind::kReduceMax);
  const auto prove = [&](const Declaration& of_matrix, const Declaration& of_row) {
    // op(f(x)) and f(op(x)).
    const ConcreteSide inside = {
        {{f, {PatternRef::Input(0)}, {matrix}}, {op, {PatternRef::Node(0)}, {matrix}}},
        {PatternRef::Node(1)}};
    const ConcreteSide outside = {
        {{op, {PatternRef::Input(0)}, {matrix}}, {f, {PatternRef::Node(0)}, {row}}},
        {PatternRef::Node(1)}};
    const structure::Side in = {&inside, {of_matrix, FirstRow(matrix)}};
    const structure::Side out = {&outside, {FirstRow(matrix), of_row}};
    std::set<std::string> lemmas;
    return structure::Commutes(in, 1, out, {0}, &lemmas);
  };
  const auto exponential = [](const Shape& shape) {
    DeclarationBuilder d(std::vector<Shape>{shape});
    const std::vector<int> dims = d.Dims("i", DimKind::kParallel, shape);
    const std::vector<Index> at(dims.begin(), dims.end());
    d.Output(at, Apply(ScalarOp::kExp, d.In(0, at)));
    return d.Build();
  };
  EXPECT_TRUE(prove(exponential(matrix), exponential(row)).ok())
      << prove(exponential(matrix), exponential(row));
  EXPECT_FALSE(prove(Function(matrix), Function(row)).ok());
}

}  // namespace
}  // namespace isomer
