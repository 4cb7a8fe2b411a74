// Mapping without a dynamic program: what that saves is asked by `bench/search ablation`, as in
// Unity's table 2 (OSDI'22).
#ifndef ISOMER_OPTIMIZER_MAPPING_MAPPING_ENUMERATION_H_
#define ISOMER_OPTIMIZER_MAPPING_MAPPING_ENUMERATION_H_

#include "optimizer/mapping/mapping_problem.h"
#include "pcg/support/stopping.h"

namespace isomer {

// Tries every choice of the whole machine for every node, all with all; nodes run one after the
// other. In time exponential in the nodes: at the deadline the best so far is the solution, and
// not exact.
MappingSolution EnumerateMappings(const MappingProblem& problem, const Deadline& deadline);

}  // namespace isomer

#endif  // ISOMER_OPTIMIZER_MAPPING_MAPPING_ENUMERATION_H_
