// From a selection of calls to a derivation: steps from the piece's own graph.
//
// Classes say that calls are equal, steps how one becomes the other. The graph is traversed from
// its outputs down; where a tensor is computed by another call than the selected one, the
// applications that lead within its class from the one to the other are made one by one. An
// application needs the calls that it matched, so these are made first, in the same way, in the
// tensors below; the traversal corrects leftovers when it gets there. An application's match
// existed before it, so this terminates.
//
// A rewrite replaces a tensor for all its users, so not every selection has a derivation: one class
// cannot be two calls at once where neither leads to the other. Unreachable calls are left as they
// are. The result is always a derivation; the mapping decides its cost.
#ifndef ISOMER_OPTIMIZER_SUBSTITUTION_EGRAPH_REPLAY_H_
#define ISOMER_OPTIMIZER_SUBSTITUTION_EGRAPH_REPLAY_H_

#include "optimizer/substitution/egraph_extract.h"
#include "optimizer/substitution/substitution.h"
#include "rules/equality/egraph.h"

namespace isomer {

// Calls that a user restricts are kept. REQUIRES: `egraph` was made from the piece's graph.
SubstitutionResult::Candidate ReplaySelection(const Piece& piece, const EGraph& egraph,
                                              const Extraction& extraction,
                                              const Selection& selection);

}  // namespace isomer

#endif  // ISOMER_OPTIMIZER_SUBSTITUTION_EGRAPH_REPLAY_H_
