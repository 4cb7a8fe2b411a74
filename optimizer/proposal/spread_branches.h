// The best plan with its branches in the other order, where some wait for exchanges.
#ifndef ISOMER_OPTIMIZER_PROPOSAL_SPREAD_BRANCHES_H_
#define ISOMER_OPTIMIZER_PROPOSAL_SPREAD_BRANCHES_H_

#include "optimizer/proposal/proposer.h"

namespace isomer {

extern const Proposer kSpreadBranches;

}  // namespace isomer

#endif  // ISOMER_OPTIMIZER_PROPOSAL_SPREAD_BRANCHES_H_
