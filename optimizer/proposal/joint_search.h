// The search of algebra and parallelism as one space (optimizer/substitution), on a submachine.
//
// Tables add up what each call takes and what moves between calls: they do not know how much of the
// gradients' synchronisation hides behind the backward pass. So there are searches that count all
// of it, none of it and, where these differ, parts of it; the simulator, which knows, decides.
#ifndef ISOMER_OPTIMIZER_PROPOSAL_JOINT_SEARCH_H_
#define ISOMER_OPTIMIZER_PROPOSAL_JOINT_SEARCH_H_

#include "optimizer/proposal/proposer.h"

namespace isomer {

extern const Proposer kJointSearch, kSyncWeights;

}  // namespace isomer

#endif  // ISOMER_OPTIMIZER_PROPOSAL_JOINT_SEARCH_H_
