// Mapping by enumeration: `bench/search ablation` measures what the dynamic program saves, as in
// Unity's table 2 (OSDI'22).
#ifndef ISOMER_OPTIMIZER_MAPPING_MAPPING_ENUMERATION_H_
#define ISOMER_OPTIMIZER_MAPPING_MAPPING_ENUMERATION_H_

#include "optimizer/mapping/mapping_problem.h"
#include "pcg/support/stopping.h"

namespace isomer {

// Tries all combinations of the nodes' choices on the full machine; nodes run one after the other.
// Exponential in the nodes: at the deadline the best so far is the solution, not exact.
MappingSolution EnumerateMappings(const MappingProblem& problem, const Deadline& deadline);

}  // namespace isomer

#endif  // ISOMER_OPTIMIZER_MAPPING_MAPPING_ENUMERATION_H_
