// Where the elements of a tensor, which calls of layout made, are in the tensor that they began
// with.
//
// However many reshapes, transpositions and selections lie between, it is one map: each dim of the
// tensor is made of atoms, pieces of the dims that they come from. So chains that an exporter wrote
// by the letter of a network's code can be written as few calls.
#ifndef ISOMER_OPTIMIZER_CANONICAL_PLACES_H_
#define ISOMER_OPTIMIZER_CANONICAL_PLACES_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "pcg/ir/operator.h"

namespace isomer {

// An atom at index i is at stride * i of dim `dim` of the base.
struct Atom {
  int dim;
  int64_t stride, size;
  friend bool operator==(const Atom&, const Atom&) = default;
};

struct Places {
  std::vector<int64_t> base;            // sizes of the tensor that it comes from
  std::vector<int64_t> first;           // where in it the first element is
  std::vector<std::vector<Atom>> dims;  // per dim of the tensor, outer atoms first
  friend bool operator==(const Places&, const Places&) = default;

  // The tensor as it is.
  static Places Of(const std::vector<int64_t>& sizes);
  std::vector<int64_t> Sizes() const;
  bool IsIdentity() const { return *this == Of(base); }
};

// Those of output `output` of a Transpose, Reshape or Split of such a tensor. None: of another
// operator, and where an atom would be cut between its pieces.
std::optional<Places> PlacesAfter(const Operator& op, int output, const Places& places);

// One of some calls, each of which takes output `output` of the one before.
struct LayoutCall {
  Operator op;
  int output = 0;
};

// Few calls that make it of the base: of what selects, the split first, at the base's own dims if
// it can be, so that queries, keys and values of one product are outputs of one split; then a
// reshape, a transposition and a reshape.
// REQUIRES: PlacesAfter made it of Of(..).
std::vector<LayoutCall> CallsOf(const Places& places);

// As two maps: `rows`, which brings all dims but the last into the order, and as far as possible
// the dims, that they have in the base, and `rest`, of what `rows` makes to `places`.
struct RowsApart {
  Places rows, rest;
};
// REQUIRES: `places` has a dim.
RowsApart WithRowsInOrder(const Places& places);

}  // namespace isomer

#endif  // ISOMER_OPTIMIZER_CANONICAL_PLACES_H_
