// The premises of the theorems, decided of declarations that nobody wrote: whatever a random
// declaration is found to be, evaluation must agree.
//
// ISOMER_DECLARATIONS=100000 ISOMER_DECLARATIONS_SEED=1 draws as many as are wanted.
#include <gtest/gtest.h>

#include <map>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "pcg/evaluation/evaluator.h"
#include "pcg/evaluation/number.h"
#include "rules/theorems/declaration_facts.h"
#include "tests/from_environment.h"

namespace isomer {
namespace {

constexpr int64_t kRows = 2, kColumns = 4;

// y[i, j] or y[j, i], or a row of it, of x [rows, columns] and w, a matrix or a row, by way of an
// intermediate or none.
class RandomDeclaration {
 public:
  explicit RandomDeclaration(uint64_t seed)
      : random_(seed),
        w_is_row_(Below(2) == 0),
        builder_(std::vector<Shape>{
            {Extent(kRows), Extent(kColumns)},
            w_is_row_ ? Shape{Extent(kColumns)} : Shape{Extent(kRows), Extent(kColumns)}}) {}

  Declaration Draw() {
    const DimKind kinds[] = {DimKind::kParallel, DimKind::kParallel, DimKind::kSpatial,
                             DimKind::kWhole};
    i_ = builder_.Dim("i", kinds[Below(4)], kRows);
    j_ = builder_.Dim("j", kinds[Below(4)], kColumns);
    const bool reduces = Below(2) == 0;
    if (reduces) k_ = builder_.Dim("k", Below(2) == 0 ? DimKind::kSum : DimKind::kWhole, kColumns);
    if (Below(3) == 0) {
      const Reduction reduction = reduces ? AnyReduction() : Reduction::kNone;
      const bool inner = reduction != Reduction::kNone;
      let_ = builder_.Let("t", {i_, j_}, reduction,
                          inner ? std::vector<int>{k_} : std::vector<int>{}, Term(2, inner));
    }
    const Reduction reduction = reduces ? AnyReduction() : Reduction::kNone;
    const bool sums = reduction != Reduction::kNone;
    std::vector<Index> at = {i_, j_};
    if (Below(5) == 0) std::swap(at[0], at[1]);
    builder_.OutputReduced(at, reduction, sums ? std::vector<int>{k_} : std::vector<int>{},
                           Term(3, sums));
    return builder_.Build();
  }

 private:
  int Below(int end) { return static_cast<int>(random_() % static_cast<uint64_t>(end)); }
  Reduction AnyReduction() {
    const Reduction all[] = {Reduction::kNone, Reduction::kSum, Reduction::kSum, Reduction::kMax,
                             Reduction::kProduct};
    return all[Below(5)];
  }
  Index Column(bool in_sum) { return in_sum && Below(2) == 0 ? Index(k_) : Index(j_); }
  Expr Load(bool in_sum) {
    if (let_.has_value() && Below(3) == 0) return *let_;
    const Outside outside = Below(4) == 0 ? Outside::kZero : Outside::kNever;
    Index column = Column(in_sum);
    if (outside == Outside::kZero) column = Shifted(column, Below(3) - 1);
    if (Below(2) == 0 && w_is_row_) return builder_.In(1, {column}, outside);
    return builder_.In(w_is_row_ ? 0 : Below(2), {i_, column}, outside);
  }
  Expr Term(int depth, bool in_sum) {
    if (depth == 0) return Load(in_sum);
    switch (Below(9)) {
      case 0:
        return Term(depth - 1, in_sum) + Term(depth - 1, in_sum);
      case 1:
        return Term(depth - 1, in_sum) - Term(depth - 1, in_sum);
      case 2:
        return Term(depth - 1, in_sum) * Term(depth - 1, in_sum);
      case 3:
        return Term(depth - 1, in_sum) * Expr(static_cast<double>(Below(4) - 1));
      case 4:
        return Apply(ScalarOp::kExp, Term(depth - 1, in_sum));
      case 5:
        return Max(Term(depth - 1, in_sum), Below(2) == 0 ? Expr(0.0) : Term(depth - 1, in_sum));
      case 6:
        return Below(2) == 0 ? Coordinate(in_sum ? k_ : j_) * Term(depth - 1, in_sum)
                             : Term(depth - 1, in_sum) / Term(depth - 1, in_sum);
      default:
        return Load(in_sum);
    }
  }

  std::mt19937_64 random_;
  const bool w_is_row_;
  DeclarationBuilder builder_;
  int i_ = 0, j_ = 0, k_ = 0;
  std::optional<Expr> let_;
};

template <typename T>
using Arrays = std::vector<Array<T>>;

template <typename T>
Arrays<T> Operands(const Declaration& d, uint64_t seed) {
  std::mt19937_64 random(seed);
  Arrays<T> operands;
  for (const Shape& shape : d.operands) {
    std::vector<int64_t> sizes;
    for (const Extent& size : shape) sizes.push_back(size.value());
    operands.emplace_back(sizes);
    for (T& x : operands.back().data) {
      x = Number<T>::FromDouble(static_cast<double>(random() % 4000) / 512 - 3);
    }
  }
  return operands;
}

template <typename T>
Arrays<T> OutputsIn(const Declaration& d, const IterationBox& box, const Arrays<T>& operands) {
  std::vector<const Array<T>*> pointers;
  for (const Array<T>& operand : operands) pointers.push_back(&operand);
  absl::StatusOr<Arrays<T>> outputs = Evaluate<T>(d, box, pointers);
  EXPECT_TRUE(outputs.ok()) << outputs.status();
  return outputs.ok() ? *std::move(outputs) : Arrays<T>();
}
template <typename T>
std::vector<T> OutputOf(const Declaration& d, const Arrays<T>& operands) {
  return OutputsIn(d, FullBox(d), operands)[0].data;
}

using Field = PrimeField;
Field Cube(Field x) { return x * x * x + x + x; }
Field CubeAndSeven(Field x) { return Cube(x) + Number<Field>::FromDouble(7); }

template <typename T, typename Function>
Arrays<T> Mapped(Arrays<T> operands, const std::vector<bool>& subset, Function f) {
  for (size_t o = 0; o < operands.size(); ++o) {
    for (T& x : operands[o].data) x = subset[o] ? f(x) : x;
  }
  return operands;
}
template <typename T, typename Function>
std::vector<T> MappedValues(std::vector<T> values, Function f) {
  for (T& x : values) x = f(x);
  return values;
}

class DeclarationCheck {
 public:
  DeclarationCheck(const Declaration& d, uint64_t seed, std::map<std::string, int>* held)
      : d_(d), seed_(seed), held_(*held) {}

  void Run() {
    for (const std::vector<bool>& subset :
         {std::vector<bool>{true, false}, {false, true}, {true, true}}) {
      Linear(subset);
      Moved(subset);
    }
    for (int v = 0; v < static_cast<int>(d_.dims.size()); ++v) Pieces(v);
    for (int operand = 0; operand < 2; ++operand) Slices(operand);
    Elementwise();
  }

 private:
  void Linear(const std::vector<bool>& subset) {
    if (!d_.IsLinearIn(subset)) return;
    ++held_["linear"];
    const Arrays<Field> x = Operands<Field>(d_, seed_), y = Operands<Field>(d_, seed_ + 1);
    Arrays<Field> sum = x, other = x;
    for (size_t o = 0; o < sum.size(); ++o) {
      if (!subset[o]) continue;
      other[o] = y[o];
      for (size_t e = 0; e < sum[o].data.size(); ++e) sum[o].data[e] += y[o].data[e];
    }
    std::vector<Field> expected = OutputOf(d_, x);
    const std::vector<Field> more = OutputOf(d_, other);
    for (size_t e = 0; e < expected.size(); ++e) expected[e] += more[e];
    EXPECT_EQ(OutputOf(d_, sum), expected) << "is not linear";
  }

  void Moved(const std::vector<bool>& subset) {
    const Moves moves = MovesElementsOf(d_, subset);
    const Arrays<Field> x = Operands<Field>(d_, seed_);
    const std::vector<Field> y = OutputOf(d_, x);
    const auto square = [](Field a) { return a * a; };
    switch (moves) {
      case Moves::kElements:
        ++held_["moves elements"];
        EXPECT_EQ(OutputOf(d_, Mapped(x, subset, CubeAndSeven)), MappedValues(y, CubeAndSeven));
        break;
      case Moves::kElementsOrZero:
        ++held_["moves elements or zero"];
        EXPECT_EQ(OutputOf(d_, Mapped(x, subset, Cube)), MappedValues(y, Cube));
        break;
      case Moves::kProduct:
        ++held_["multiplies elements"];
        EXPECT_EQ(OutputOf(d_, Mapped(x, subset, square)), MappedValues(y, square));
        break;
      case Moves::kLargest:
      case Moves::kSmallest:
      case Moves::kElementsOrOthers:
        Increasing(subset, moves);
        break;
      case Moves::kNothingKnown:
        break;
    }
  }

  // Over the reals: the largest of what an increasing function makes is what it makes of it.
  void Increasing(const std::vector<bool>& subset, Moves moves) {
    if (moves == Moves::kElementsOrOthers) return;  // Of what else it may be nothing is said.
    ++held_["takes the largest or smallest"];
    const auto f = [](double a) { return 4 * a + (a > 0 ? a : 0) + 1; };
    const Arrays<double> x = Operands<double>(d_, seed_);
    EXPECT_EQ(OutputOf(d_, Mapped(x, subset, f)), MappedValues(OutputOf(d_, x), f));
  }

  // Two tasks, each with its half of what the dim leads and anything else in place of the rest.
  void Pieces(int v) {
    if (!d_.IsPartitionable(v)) return;
    ++held_["partitionable"];
    const Arrays<Field> x = Operands<Field>(d_, seed_);
    const std::vector<Field> expected = OutputOf(d_, x);
    std::vector<Field> assembled(expected.size(), Number<Field>::FromDouble(0));
    std::vector<int64_t> degrees(d_.dims.size(), 1);
    degrees[v] = 2;
    const int64_t half = d_.dims[v].size.value() / 2;
    for (int64_t task = 0; task < 2; ++task) {
      std::vector<int64_t> at(d_.dims.size(), 0);
      at[v] = task;
      Arrays<Field> held = x;
      const bool has_halo = d_.dims[v].kind == DimKind::kSpatial;
      for (int o = 0; o < 2 && !has_halo; ++o) {
        for (int axis = 0; axis < static_cast<int>(d_.operands[o].size()); ++axis) {
          if (d_.LeadOfOperandDim(o, axis) != v) continue;
          ForOthers(&held[o], axis, task * half, (task + 1) * half);
        }
      }
      const Array<Field> made = OutputsIn(d_, TaskBox(d_, degrees, at), held)[0];
      AddPiece(made, &assembled);
    }
    EXPECT_EQ(assembled, expected) << "dim " << d_.dims[v].name;
  }

  // Slice i of the output is made of slice i of the operand.
  void Slices(int operand) {
    for (int axis = 0; axis < static_cast<int>(d_.operands[operand].size()); ++axis) {
      for (int output_axis = 0; output_axis < 2; ++output_axis) {
        if (d_.operands[operand][axis] != d_.outputs[0][output_axis]) continue;
        if (!GoesBySlices(d_, operand, axis, output_axis)) continue;
        ++held_["goes by slices"];
        const Arrays<Field> x = Operands<Field>(d_, seed_);
        const std::vector<Field> expected = OutputOf(d_, x);
        for (int64_t i = 0; i < d_.operands[operand][axis].value(); ++i) {
          Arrays<Field> other = x;
          ForOthers(&other[operand], axis, i, i + 1);
          const std::vector<Field> found = OutputOf(d_, other);
          for (size_t e = 0; e < found.size(); ++e) {
            if (PlaceOn(output_axis, e) != i) continue;
            EXPECT_EQ(found[e], expected[e]) << "slice " << i;
          }
        }
      }
    }
  }

  void Elementwise() {
    if (!IsElementwise(d_)) return;
    ++held_["elementwise"];
    Arrays<double> zeros = Operands<double>(d_, seed_), low = zeros, high = zeros;
    for (size_t o = 0; o < zeros.size(); ++o) {
      for (size_t e = 0; e < zeros[o].data.size(); ++e) {
        zeros[o].data[e] = 0;
        high[o].data[e] += static_cast<double>(e % 3);
      }
    }
    if (KeepsZero(d_)) {
      ++held_["keeps zero"];
      for (double y : OutputOf(d_, zeros)) EXPECT_EQ(y, 0);
    }
    if (IsNondecreasing(d_)) {
      ++held_["nondecreasing"];
      const std::vector<double> a = OutputOf(d_, low), b = OutputOf(d_, high);
      for (size_t e = 0; e < a.size(); ++e) EXPECT_LE(a[e], b[e]);
    }
  }

  int64_t PlaceOn(int output_axis, size_t element) const {
    const int64_t columns = d_.outputs[0][1].value();
    return output_axis == 0 ? static_cast<int64_t>(element) / columns
                            : static_cast<int64_t>(element) % columns;
  }

  // Changes what lies outside of [begin, end) along `axis`.
  static void ForOthers(Array<Field>* array, int axis, int64_t begin, int64_t end) {
    const int64_t inner =
        axis == static_cast<int>(array->shape.size()) - 1 ? 1 : array->shape.back();
    for (size_t e = 0; e < array->data.size(); ++e) {
      const int64_t place = static_cast<int64_t>(e) / inner % array->shape[axis];
      if (place < begin || place >= end) array->data[e] = Cube(array->data[e]) + CubeAndSeven({});
    }
  }

  void AddPiece(const Array<Field>& piece, std::vector<Field>* whole) const {
    const int64_t columns = d_.outputs[0][1].value();
    for (int64_t e = 0; e < piece.size(); ++e) {
      const int64_t row = piece.origin[0] + e / piece.shape[1];
      const int64_t column = piece.origin[1] + e % piece.shape[1];
      (*whole)[row * columns + column] += piece.data[e];
    }
  }

  const Declaration& d_;
  const uint64_t seed_;
  std::map<std::string, int>& held_;
};

TEST(RandomDeclarations, AreWhatTheyAreFoundToBe) {
  const int64_t count = FromEnvironment("ISOMER_DECLARATIONS", 3000);
  const uint64_t first = static_cast<uint64_t>(FromEnvironment("ISOMER_DECLARATIONS_SEED", 1))
                         << 32;
  std::map<std::string, int> held;
  for (uint64_t seed = first; seed < first + static_cast<uint64_t>(count); ++seed) {
    const Declaration d = RandomDeclaration(seed).Draw();
    SCOPED_TRACE(testing::Message() << "seed " << seed << "\n" << d.ToString());
    DeclarationCheck(d, seed, &held).Run();
    if (testing::Test::HasFailure()) break;
  }
  for (const char* premise :
       {"linear", "moves elements", "moves elements or zero", "multiplies elements",
        "takes the largest or smallest", "partitionable", "goes by slices", "elementwise",
        "keeps zero", "nondecreasing"}) {
    EXPECT_GT(held[premise], 0) << premise << " was never found";
  }
}

}  // namespace
}  // namespace isomer
