// The graph mapped without cuts. Cuts keep branches on either side of them from running beside each
// other; and what tables say of algebra may be wrong, for all that a fused call cannot be split
// into.
#ifndef ISOMER_OPTIMIZER_PROPOSAL_ONE_PIECE_H_
#define ISOMER_OPTIMIZER_PROPOSAL_ONE_PIECE_H_

#include "optimizer/proposal/proposer.h"

namespace isomer {

extern const Proposer kOnePiece;

}  // namespace isomer

#endif  // ISOMER_OPTIMIZER_PROPOSAL_ONE_PIECE_H_
