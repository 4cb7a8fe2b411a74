// Maxima and minima in normal form.
//
// A term of max, min, negation and constants over values a_1 .. a_k is everywhere one of +-a_i or a
// constant; which of them depends on the order of the values, their negations and the constants
// alone. So the term is determined by what it is in each of these orders, of which there are
// finitely many (2^k k! without constants but 0), and equal terms have equal tables. Nothing else
// is known of the values, and what holds for all orders holds in every totally ordered set whose
// order negation reverses.
#ifndef ISOMER_VERIFIER_ELEMENTS_LATTICE_H_
#define ISOMER_VERIFIER_ELEMENTS_LATTICE_H_

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace isomer {

struct LatticeTerm {
  enum class Kind { kAtom, kInteger, kMaximum };
  Kind kind = Kind::kAtom;
  int sign = 1;         // -1: the negation of all that follows
  std::string atom;     // equal texts are equal values
  int64_t integer = 0;  // kInteger
  std::vector<LatticeTerm> arguments;
};

struct LatticeForm {
  // The term is `sign` times what `text` says; of the two ways to say it, the smaller text.
  std::string text;
  int sign = 1;
  // Set if the term is always an atom or an integer: then `text` is that atom (or empty, and
  // `integer` is set).
  bool only_atom = false;
  std::optional<int64_t> integer;
};

// Errors: too many atoms.
absl::StatusOr<LatticeForm> LatticeFormOf(const LatticeTerm& term);

// A strict order of atoms, their negations, 0 and constants; of the numbers that stand for atoms
// only the order means anything. Whatever the atoms are, there is such an order that no two of them
// contradict: where two are equal, either may be taken for the larger one. So what is equal in each
// order is equal.
struct Order {
  std::map<std::string, double> atoms;
  std::set<int64_t> constants;  // positive
};

void CollectAtoms(const LatticeTerm& term, std::set<std::string>* atoms,
                  std::set<int64_t>* constants);
// The orders of one more atom that agree with `order`.
std::vector<Order> OrdersWith(const Order& order, const std::string& atom);
// What the term is in an order: an atom or an integer. nullopt: a constant has no place in it.
// REQUIRES: its atoms have.
std::optional<LatticeForm> FormIn(const Order& order, const LatticeTerm& term);

}  // namespace isomer

#endif  // ISOMER_VERIFIER_ELEMENTS_LATTICE_H_
