// Mappings in which branches that only meet (towers that a Concat joins) may run beside each other:
// each keeps to the devices of what it leads to, or to a share of them, beside those on another.
//
// It is not always better. By the tables a branch waits for what it communicates, so that two of
// them take the sum of all that on the same devices; in a step each computes while the other
// communicates. So both mappings are found, and the simulator decides.
#ifndef ISOMER_OPTIMIZER_MAPPING_MAPPING_BRANCHES_H_
#define ISOMER_OPTIMIZER_MAPPING_MAPPING_BRANCHES_H_

#include "optimizer/mapping/mapping_problem.h"

namespace isomer {

MappingSolution SolveWithConcurrentBranches(const MappingProblem& problem,
                                            const MappingOptions& options = {});

}  // namespace isomer

#endif  // ISOMER_OPTIMIZER_MAPPING_MAPPING_BRANCHES_H_
