// Why a call may be spread over tasks: the lemmas behind every use of degrees and partials.
//
// For each iteration dim that may be partitioned (Declaration::IsPartitionable):
//   parallel dim: the pieces of the outputs are the call on the pieces of its operands,
//                 split(op(x)).p = op(split(x).p) for any piece [o, o+n) of the dim;
//   sum dim:      op(concat(x, x')) = op(x) + op(x'), where x' may again be a Concat.
// For each set of operands that the call is linear in: op(x + x') = op(x) + op(x').
// By induction over pieces these hold for every degree and every number of partials.
//
// That a dim may be partitioned, and that a call is linear, is read off its declaration
// (Declaration::PiecesSuffice, IsLinearIn): by the theorems "pieces" and "linear" of structure.h
// the lemmas follow. The normal forms of both sides, with pieces written as Splits, are a second
// proof of them, which owes nothing to those theorems.
#ifndef ISOMER_VERIFIER_VALUES_PIECE_LEMMAS_H_
#define ISOMER_VERIFIER_VALUES_PIECE_LEMMAS_H_

#include <map>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "verifier/terms/rule_instance.h"

namespace isomer {

class PieceLemmas {
 public:
  // Adds to `lemmas` the ids of those that a declared call rests on if it is spread over tasks, for
  // all of its dims and linear sets: "pieces_of_matmul_m", "sum_of_pieces_of_matmul_k",
  // "matmul_is_linear_in_0".
  void Add(const Call& call, std::set<std::string>* lemmas);

 private:
  std::map<std::string, std::set<std::string>> known_;
};

// The second proof. The error names a lemma that is not proved so.
absl::Status ProveByNormalForms(const Call& call);

}  // namespace isomer

#endif  // ISOMER_VERIFIER_VALUES_PIECE_LEMMAS_H_
