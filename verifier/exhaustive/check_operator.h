// Lemmas about one operator, tried at its small calls.
#ifndef ISOMER_VERIFIER_EXHAUSTIVE_CHECK_OPERATOR_H_
#define ISOMER_VERIFIER_EXHAUSTIVE_CHECK_OPERATOR_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "pcg/ir/operator.h"
#include "verifier/exhaustive/compare.h"

namespace isomer {

// What was seen of one lemma.
struct Tally {
  int64_t instances = 0;                   // compared, those below included
  int64_t by_numbers = 0;                  // equal at points, where the polynomials did not decide
  std::vector<std::string> disagreements;  // one line each, the first few

  void Add(const LemmaComparison& comparison, const std::string& instance);
  void Add(const Tally& other);
};

// By id of the lemma: "pieces_of_matmul_m", "sum_of_pieces_of_matmul_k", "pieces_of_matmul" (all of
// its dims), "matmul_is_linear_in_0".
using Tallies = std::map<std::string, Tally>;

// Pieces: every partitionable dim of every small call, by every degree from 2 to 4 that divides it.
// Linearity: every set of operands in which the call is linear. Calls are taken in an order that
// spreads over the space, until their points (PointsOf) exceed `most_points`;
// calls of more than 2,000 points are left out.
Tallies CheckOperator(OpKind kind, int64_t most_points);

}  // namespace isomer

#endif  // ISOMER_VERIFIER_EXHAUSTIVE_CHECK_OPERATOR_H_
