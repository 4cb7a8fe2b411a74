// From a selection of calls to a derivation: steps from the piece's own graph.
//
// Classes say that calls are equal, steps how one becomes the other. The graph is walked from its
// outputs down; where a tensor is computed by another call than the selected one, the applications
// that lead within its class from the one to the other are made one by one. An application needs
// the calls that it matched, so these are brought about first, in the same way, in the tensors
// below; what they leave there is put right when the walk arrives. What an application matched
// existed before it, so this ends.
//
// Rewriting replaces a tensor for all its users, so not every selection has a derivation: one class
// cannot be two calls at once where neither leads to the other. What cannot be reached is left as
// it is. The result is always a derivation; its cost is for the mapping to say.
#ifndef ISOMER_OPTIMIZER_SUBSTITUTION_EGRAPH_REPLAY_H_
#define ISOMER_OPTIMIZER_SUBSTITUTION_EGRAPH_REPLAY_H_

#include "optimizer/substitution/egraph.h"
#include "optimizer/substitution/egraph_extract.h"
#include "optimizer/substitution/substitution.h"

namespace isomer {

// Calls that a user restricts stay. REQUIRES: `egraph` was made from the piece's graph.
SubstitutionResult::Candidate ReplaySelection(const Piece& piece, const EGraph& egraph,
                                              const Extraction& extraction,
                                              const Selection& selection);

}  // namespace isomer

#endif  // ISOMER_OPTIMIZER_SUBSTITUTION_EGRAPH_REPLAY_H_
