// Why a call may be spread over tasks: the lemmas behind every use of degrees and partials.
//
// For each iteration dim that may be partitioned (Declaration::IsPartitionable):
//   parallel dim: the pieces of the outputs are the call on the pieces of its operands,
//                 split(op(x)).p = op(split(x).p) for any piece [o, o+n) of the dim;
//   sum dim:      op(concat(x, x')) = op(x) + op(x'), where x' may again be a Concat.
// For each set of operands that the call is linear in: op(x + x') = op(x) + op(x').
// By induction over pieces these hold for every degree and every number of partials. They are
// proved like other lemmas, with pieces written as Splits.
#ifndef ISOMER_VERIFIER_PIECE_LEMMAS_H_
#define ISOMER_VERIFIER_PIECE_LEMMAS_H_

#include <map>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "verifier/rule_instance.h"

namespace isomer {

class PieceLemmas {
 public:
  // Proves the lemmas of a declared call and adds their ids to `lemmas`: "pieces_of_matmul_m",
  // "sum_of_pieces_of_matmul_k", "matmul_is_linear_in_0". The error names one that is not proved.
  absl::Status Prove(const Call& call, const std::vector<Shape>& operands,
                     std::set<std::string>* lemmas);

 private:
  struct Known {
    absl::Status status;
    std::set<std::string> lemmas;
  };
  std::map<std::string, Known> known_;
};

}  // namespace isomer

#endif  // ISOMER_VERIFIER_PIECE_LEMMAS_H_
