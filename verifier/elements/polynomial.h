// What one element of a term is, as a polynomial in elements of its variables.
//
// An element is a sum of monomials; a monomial is a coefficient times factors, summed over bound
// indices, where guards hold:
//
//     MatMul(X, Concat{-1}(Y, Z))[m,n]  =    sum_{k<K} X[m,k] * Y[k,n]      where 0 <= n < N
//                                          + sum_{k<K} X[m,k] * Z[k,n-N]    where 0 <= n-N < N'
//
// Sizes are symbols, all at least 1. The polynomial is read off the operators' declarations;
// exp, sqrt, ... are functions of which nothing is known; of max only the laws of a lattice.
#ifndef ISOMER_VERIFIER_ELEMENTS_POLYNOMIAL_H_
#define ISOMER_VERIFIER_ELEMENTS_POLYNOMIAL_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "pcg/evaluation/exact_number.h"
#include "pcg/ir/declaration.h"
#include "pcg/ir/extent.h"
#include "verifier/elements/term.h"

namespace isomer {

// coefficient * index + .. + offset. Indices 0, 1, .. are those of the element asked for; bound
// indices are larger numbers, each used once.
struct Affine {
  std::map<int, int64_t> terms;
  Extent offset;
  static Affine Variable(int v) { return {{{v, 1}}, 0}; }
  friend bool operator==(const Affine&, const Affine&) = default;
};
Affine operator+(Affine a, const Affine& b);
Affine operator*(Affine a, int64_t factor);
// `a` with the index `v` replaced.
Affine Substitute(const Affine& a, int v, const Affine& replacement);

struct Bound {
  int index;
  Extent size;
};

// 0 <= value < size.
struct Guard {
  Affine value;
  Extent size;
};

struct Polynomial;

// The variable whose elements are their own indices.
inline constexpr int kCoordinates = -2;

struct Factor {
  enum class Kind {
    kElement,     // of variable `variable`, at `indices`; or of kCoordinates, of whose
                  // elements no more is known than of others but where an index is one number
    kFunction,    // `function` of `arguments`
    kReciprocal,  // 1 / arguments[0]
    kMaximum,     // over `bounds` of arguments[0]
    kSelected,    // 1 where indices[0] equals arguments[0], else 0
    kCast,        // what a cast to the data type `variable` makes of arguments[0]: of that nothing
                  // is known, since it rounds
  };
  Kind kind = Kind::kElement;
  int variable = -1;
  std::vector<Affine> indices;
  ScalarOp function = ScalarOp::kExp;
  std::vector<Polynomial> arguments;
  std::vector<Bound> bounds;
};

// A number times variables (the factors of Scales), exactly.
struct Coefficient {
  ExactNumber constant = 1;
  std::vector<std::string> variables;  // sorted
  friend bool operator==(const Coefficient&, const Coefficient&) = default;
};
Coefficient operator*(const Coefficient& a, const Coefficient& b);

struct Monomial {
  Coefficient coefficient;
  std::vector<Bound> bounds;
  std::vector<Guard> guards;
  std::vector<Factor> factors;
};

struct Polynomial {
  std::vector<Monomial> monomials;
};

void SubstituteIn(Polynomial* polynomial, int v, const Affine& replacement);
void SubstituteIn(Monomial* monomial, int v, const Affine& replacement);
bool Mentions(const Polynomial& polynomial, int v);
bool Mentions(const Monomial& monomial, int v);

// The number; a factor; a function of polynomials.
Polynomial Constant(Coefficient number);
Polynomial Single(Factor factor);
Polynomial Function(ScalarOp op, std::vector<Polynomial> arguments);
Polynomial Scaled(Polynomial a, int64_t factor);
// The factor if the polynomial is one factor and nothing else.
const Factor* OnlyFactor(const Polynomial& polynomial);
// A copy with fresh bound indices, from *next_bound on.
Monomial Renamed(Monomial monomial, int* next_bound);
// All bound indices get new names. Errors: too many monomials.
absl::StatusOr<Polynomial> Product(const Polynomial& a, const Polynomial& b, int* next_bound);

// Which index is cut: a free one, by dim of the element asked for, or all that are bound; and the
// size of what is cut of it.
struct IndexPiece {
  int dim;  // kBoundIndex: of sums
  int64_t size;
  friend auto operator<=>(const IndexPiece&, const IndexPiece&) = default;
};
inline constexpr int kBoundIndex = -1;
// Pieces to be read as two: the size of the inner one. Both may be cut again.
using IndexCuts = std::map<IndexPiece, int64_t>;

// Reads elements of the terms of a pool. Indices of sums of one size are cut alike, so that what
// one term merges and another does not reads the same in both.
class ElementReader {
 public:
  ElementReader(const TermPool& pool, IndexCuts cuts) : pool_(pool), cuts_(std::move(cuts)) {}
  // An index of 0 .. size - 1, in variables that are added to `bounds`, numbered from *next on.
  Affine IndexOf(int dim, const Extent& size, int* next, std::vector<Bound>* bounds);
  // Says that all elements of a variable are this number.
  void KnowValue(int variable, double value) { known_values_[variable] = value; }
  // The element of `term` at `indices`. Errors: a declaration whose output cannot be read
  // backwards, or that divides indices (a Reshape between incommensurable shapes).
  absl::StatusOr<Polynomial> Read(TermId term, const std::vector<Affine>& indices);
  // After an error: the cut without which an index does not show the dims that it merges.
  const std::optional<std::pair<IndexPiece, int64_t>>& wanted_cut() const { return wanted_cut_; }

 private:
  absl::StatusOr<Polynomial> ReadStatement(const Declaration& d, int statement,
                                           const std::vector<TermId>& operands,
                                           std::map<int, Affine> dims);
  absl::StatusOr<Polynomial> ReadAccess(const Declaration& d, const Access& access,
                                        const std::vector<TermId>& operands,
                                        const std::map<int, Affine>& dims);
  absl::StatusOr<Affine> AffineOf(const Index& index, const std::map<int, Affine>& dims);
  absl::StatusOr<std::vector<Affine>> AffinesOf(const Access& access,
                                                const std::map<int, Affine>& dims);
  // A choice between branches by which of two indices is less, as their sum under guards. nullopt:
  // by something else.
  std::optional<Polynomial> ByOrder(const Polynomial& condition, const Polynomial& yes,
                                    const Polynomial& no) const;
  // value / stride and value % stride.
  absl::StatusOr<std::pair<Affine, Affine>> Divided(const Affine& value, int64_t stride);
  // The dims of which an output index is made, where it is `value`.
  absl::Status Unmerge(const Declaration& d, const Index& index, Affine value,
                       std::map<int, Affine>* dims);

  const TermPool& pool_;
  const IndexCuts cuts_;
  std::optional<std::pair<IndexPiece, int64_t>> wanted_cut_;
  std::map<int, IndexPiece> pieces_;  // by index variable, if its size is known
  std::map<int, Extent> sizes_;       // by index variable
  std::map<int, double> known_values_;
  int next_bound_ = 1000, reads_ = 0;
};

}  // namespace isomer

#endif  // ISOMER_VERIFIER_ELEMENTS_POLYNOMIAL_H_
