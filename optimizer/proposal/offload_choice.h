// Which activations of a plan lie in the host's memory until the backward pass, rather than on the
// device or being computed again (OptimizeOptions::may_offload).
//
// The bus between device and host is one more thing that works beside computation, so it is given
// what saves most by it: of results that the best plan computes again, those that take most time
// for their bytes, more of them as long as steps get shorter. Where nothing fits, what the smallest
// plan keeps goes there as well: the ends of its segments, the first ones first, which are needed
// last.
#ifndef ISOMER_OPTIMIZER_PROPOSAL_OFFLOAD_CHOICE_H_
#define ISOMER_OPTIMIZER_PROPOSAL_OFFLOAD_CHOICE_H_

#include <vector>

#include "absl/types/span.h"
#include "optimizer/proposal/proposer.h"
#include "optimizer/simulator/segments.h"
#include "pcg/ir/graph.h"
#include "pcg/ir/plan.h"

namespace isomer {

extern const Proposer kOffload;

// Of `nodes`, those whose results are kept for the backward pass, most time to compute them per
// byte first.
std::vector<NodeId> ByTimePerByte(absl::Span<const NodeId> nodes,
                                  absl::Span<const NodeResults> results);

// The plan with these results on the host, and no longer computed again. What only names their
// bytes otherwise (reshapes) is then made again from what is fetched, which takes no time.
Plan WithOffloaded(Plan plan, absl::Span<const NodeId> nodes,
                   absl::Span<const NodeResults> results);

}  // namespace isomer

#endif  // ISOMER_OPTIMIZER_PROPOSAL_OFFLOAD_CHOICE_H_
