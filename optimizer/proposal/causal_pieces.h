// Causal attention, cut along its queries.
//
//   attention(q, k, v)  ->  concat(attention(q[0..m], k[0..m + T - S], v[0..m + T - S]),
//                                  attention(q[m..S], k, v))
//
// A query sees no keys behind its own, so that of S queries that are spread over devices in
// order, the last device computes nearly twice the mean. Where each device has one part of the
// early queries and one of the late ones, counted from the other end, all compute the same.
// Besides, the early queries need no late keys; and behind a window the late ones no early keys.
//
// No rule splits a slice or a concat in the dim that it cuts. Split by heads instead, they cost two
// all-to-alls, of the queries and of the result.
#ifndef ISOMER_OPTIMIZER_PROPOSAL_CAUSAL_PIECES_H_
#define ISOMER_OPTIMIZER_PROPOSAL_CAUSAL_PIECES_H_

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "optimizer/canonical/stated_rewrite.h"
#include "pcg/ir/plan.h"

namespace isomer {

// A model's graph after steps without rules. Ids are those of the growing graph, in which the calls
// that were cut are still there, unused.
struct CausalPieces {
  Graph graph;
  std::vector<DerivationStep> steps;
  // For each attention that was cut, its pieces, early queries first.
  std::vector<std::vector<NodeId>> pieces;
};

// Cuts every causal attention into `num_pieces` of equally many queries, if each can be split into
// `degree` parts and `equal` shows the step. Others stay, and those of which `keeps` says so by
// their names. REQUIRES: types are sequential; num_pieces >= 2, degree >= 1.
CausalPieces CutCausalAttention(const Model& model, int64_t num_pieces, int64_t degree,
                                const AreEqual& equal,
                                const std::function<bool(const std::string& name)>& keeps);

}  // namespace isomer

#endif  // ISOMER_OPTIMIZER_PROPOSAL_CAUSAL_PIECES_H_
