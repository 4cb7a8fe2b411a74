// The index map from the elements of a tensor made by layout calls to the tensor that they started
// from.
//
// Any chain of reshapes, transpositions and selections is one map: each dim of the result is a
// product of atoms, pieces of the base's dims. So long chains from an exporter can be replaced by
// few calls.
#ifndef ISOMER_OPTIMIZER_CANONICAL_PLACES_H_
#define ISOMER_OPTIMIZER_CANONICAL_PLACES_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "pcg/ir/operator.h"

namespace isomer {

// Index i of an atom is at stride * i of dim `dim` of the base.
struct Atom {
  int dim;
  int64_t stride, size;
  friend bool operator==(const Atom&, const Atom&) = default;
};

struct Places {
  std::vector<int64_t> base;            // sizes of the base tensor
  std::vector<int64_t> first;           // base index of the first element
  std::vector<std::vector<Atom>> dims;  // per dim of the result, outer atoms first
  friend bool operator==(const Places&, const Places&) = default;

  // The identity.
  static Places Of(const std::vector<int64_t>& sizes);
  std::vector<int64_t> Sizes() const;
  bool IsIdentity() const { return *this == Of(base); }
};

// The map after output `output` of a Transpose, Reshape or Split. nullopt: of another operator, or
// where an atom would be cut between its pieces.
std::optional<Places> PlacesAfter(const Operator& op, int output, const Places& places);

// A call on output `output` of the call before it.
struct LayoutCall {
  Operator op;
  int output = 0;
};

// A short chain of calls that computes the map: selections first, as one split at the base's own
// dims if possible, so that queries, keys and values of one product are outputs of one split; then
// a reshape, a transposition and a reshape. REQUIRES: PlacesAfter made it of Of(..).
std::vector<LayoutCall> CallsOf(const Places& places);

// A factorisation into `rows`, which brings all dims but the last into the order and, as far as
// possible, the shape that they have in the base, and `rest`, from the result of `rows` to
// `places`.
struct RowsApart {
  Places rows, rest;
};
// REQUIRES: `places` has a dim.
RowsApart WithRowsInOrder(const Places& places);

}  // namespace isomer

#endif  // ISOMER_OPTIMIZER_CANONICAL_PLACES_H_
