// The best plan, if it is a pipeline, with backward passes in two halves.
#ifndef ISOMER_OPTIMIZER_PROPOSAL_ZERO_BUBBLE_ORDERS_H_
#define ISOMER_OPTIMIZER_PROPOSAL_ZERO_BUBBLE_ORDERS_H_

#include "optimizer/proposal/proposer.h"

namespace isomer {

// Where its bubbles are worth a prediction.
extern const Proposer kZeroBubbleOrders;

}  // namespace isomer

#endif  // ISOMER_OPTIMIZER_PROPOSAL_ZERO_BUBBLE_ORDERS_H_
