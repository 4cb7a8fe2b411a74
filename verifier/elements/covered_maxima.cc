#include "verifier/elements/covered_maxima.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "pcg/support/status_macros.h"
#include "verifier/elements/polynomial_text.h"

namespace isomer {
namespace {

// Of one maximum beside another: more places than these are not looked at.
constexpr size_t kMostPlaces = 64;
constexpr int kFirstPlaced = 2000000;  // above the indices of what is simplified

const Factor* OnlyMaximumOverBounds(const Polynomial& polynomial) {
  const Factor* only = OnlyFactor(polynomial);
  return only != nullptr && only->kind == Factor::Kind::kMaximum ? only : nullptr;
}

// The indices at which elements are read, each once.
void CollectIndices(const Polynomial& polynomial, std::vector<Affine>* indices) {
  for (const Monomial& monomial : polynomial.monomials) {
    for (const Factor& factor : monomial.factors) {
      for (const Affine& index : factor.indices) {
        if (std::find(indices->begin(), indices->end(), index) == indices->end()) {
          indices->push_back(index);
        }
      }
      for (const Polynomial& argument : factor.arguments) CollectIndices(argument, indices);
    }
  }
}

// Whether 0 <= index < size wherever the indices that it is of are.
bool IsBelow(const Affine& index, const Extent& size, Ranges ranges) {
  for (const auto& [v, coefficient] : index.terms) {
    if (!ranges.contains(v)) return false;  // of a sum or maximum inside
  }
  Monomial monomial;
  monomial.guards.push_back({index, size});
  return DecideGuards(&monomial, &ranges) && monomial.guards.empty();
}

// Whether `maximum` is taken over `x`, or over all that x is the maximum of.
absl::StatusOr<bool> IsTakenOver(const Factor& maximum, const Polynomial& x, Ranges ranges) {
  Polynomial of_x = x;
  if (const Factor* inner = OnlyMaximumOverBounds(x); inner != nullptr) {
    for (const Bound& bound : inner->bounds) ranges[bound.index] = {0, bound.size};
    of_x = inner->arguments[0];
  }
  int next = kFirstPlaced;
  const Factor whole = Renamed(Single(maximum).monomials[0], &next).factors[0];
  std::vector<Affine> indices;
  CollectIndices(of_x, &indices);
  const IndexNames names = NamesOf(ranges);
  ISOMER_ASSIGN_OR_RETURN(const std::string text, PolynomialText(of_x, ranges, names));
  // What it is taken over, with the first bounds at a place.
  std::vector<Polynomial> placed = {whole.arguments[0]};
  for (const Bound& bound : whole.bounds) {
    std::vector<Polynomial> further;
    for (const Affine& index : indices) {
      if (!IsBelow(index, bound.size, ranges)) continue;
      for (const Polynomial& polynomial : placed) {
        further.push_back(polynomial);
        SubstituteIn(&further.back(), bound.index, index);
      }
    }
    placed = std::move(further);
    if (placed.size() > kMostPlaces) return false;
  }
  for (const Polynomial& polynomial : placed) {
    ISOMER_ASSIGN_OR_RETURN(const std::string here, PolynomialText(polynomial, ranges, names));
    if (here == text) return true;
  }
  return false;
}

// False: that is not seen.
absl::StatusOr<bool> IsAtMost(const Polynomial& less, const Polynomial& more,
                              const Ranges& ranges) {
  if (const Factor* maximum = OnlyMaximumOverBounds(more); maximum != nullptr) {
    ISOMER_ASSIGN_OR_RETURN(const bool is_taken, IsTakenOver(*maximum, less, ranges));
    if (is_taken) return true;
  }
  const Polynomial minus_less = Scaled(less, -1), minus_more = Scaled(more, -1);
  const Factor* maximum = OnlyMaximumOverBounds(minus_less);
  return maximum == nullptr ? false : IsTakenOver(*maximum, minus_more, ranges);
}

void CollectArguments(const Polynomial& polynomial, std::vector<Polynomial>* arguments) {
  int sign = 1;
  const Factor* maximum = OnlyMaximum(polynomial, &sign);
  if (maximum == nullptr || sign < 0) return arguments->push_back(polynomial);
  for (const Polynomial& argument : maximum->arguments) CollectArguments(argument, arguments);
}

}  // namespace

absl::StatusOr<Polynomial> WithoutCovered(const Factor& maximum, const Ranges& ranges) {
  std::vector<Polynomial> arguments;
  CollectArguments(Single(maximum), &arguments);
  for (size_t a = 0; a < arguments.size(); ++a) {
    for (size_t other = 0; other < arguments.size(); ++other) {
      if (a == other) continue;
      ISOMER_ASSIGN_OR_RETURN(const bool covered, IsAtMost(arguments[a], arguments[other], ranges));
      if (!covered) continue;
      arguments.erase(arguments.begin() + static_cast<int64_t>(a--));
      break;
    }
  }
  Polynomial result = arguments[0];
  for (size_t a = 1; a < arguments.size(); ++a) {
    result = Function(ScalarOp::kMax, {std::move(result), arguments[a]});
  }
  return result;
}

}  // namespace isomer
