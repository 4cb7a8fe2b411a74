// Mappings in which branches that only meet (towers that a Concat joins) may run concurrently: each
// on the devices of its successor, or on a share of them, disjoint from the other's.
//
// That is not always better. Tables count a branch's communication as exposed, so two branches on
// the same devices cost the sum; in a step one computes while the other communicates. So both
// mappings are found, and the simulator decides.
#ifndef ISOMER_OPTIMIZER_MAPPING_MAPPING_BRANCHES_H_
#define ISOMER_OPTIMIZER_MAPPING_MAPPING_BRANCHES_H_

#include "optimizer/mapping/mapping_problem.h"

namespace isomer {

MappingSolution SolveWithConcurrentBranches(const MappingProblem& problem,
                                            const MappingOptions& options = {});

}  // namespace isomer

#endif  // ISOMER_OPTIMIZER_MAPPING_MAPPING_BRANCHES_H_
