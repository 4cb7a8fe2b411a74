// The graph of a mapped computation without a derivation: between two calls, the parallel operators
// that lead from what the one leaves to what the other needs, once for each form of a value.
#ifndef ISOMER_TESTS_OPTIMIZER_DIRECT_MAPPING_H_
#define ISOMER_TESTS_OPTIMIZER_DIRECT_MAPPING_H_

#include "optimizer/mapping/derivation.h"
#include "pcg/ir/plan.h"

namespace isomer {

// REQUIRES: every compute node of `mapped` has a choice.
MappedGraph MapDirectly(const MappedModel& mapped);

}  // namespace isomer

#endif  // ISOMER_TESTS_OPTIMIZER_DIRECT_MAPPING_H_
