// Mappings by hand that leave devices idle: what a part of the machine would have as baselines,
// were it all.
#ifndef ISOMER_OPTIMIZER_PROPOSAL_PARTS_H_
#define ISOMER_OPTIMIZER_PROPOSAL_PARTS_H_

#include "optimizer/proposal/proposer.h"

namespace isomer {

// Without it no parts are searched, either.
extern const Proposer kParts;

}  // namespace isomer

#endif  // ISOMER_OPTIMIZER_PROPOSAL_PARTS_H_
