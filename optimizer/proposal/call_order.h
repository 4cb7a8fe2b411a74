// The fastest mappings with calls in the model's order, rather than in the one that puts exchanges
// early (pcg/schedule/order/execution_order.h).
#ifndef ISOMER_OPTIMIZER_PROPOSAL_CALL_ORDER_H_
#define ISOMER_OPTIMIZER_PROPOSAL_CALL_ORDER_H_

#include "optimizer/proposal/proposer.h"

namespace isomer {

extern const Proposer kCallOrder;

}  // namespace isomer

#endif  // ISOMER_OPTIMIZER_PROPOSAL_CALL_ORDER_H_
