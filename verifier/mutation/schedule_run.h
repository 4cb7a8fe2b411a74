// Runs a schedule in this process, buffer by buffer, over the prime field: what it computes,
// whatever it says that it does.
#ifndef ISOMER_VERIFIER_MUTATION_SCHEDULE_RUN_H_
#define ISOMER_VERIFIER_MUTATION_SCHEDULE_RUN_H_

#include <cstdint>
#include <map>
#include <vector>

#include "absl/status/statusor.h"
#include "pcg/evaluation/prime_field.h"
#include "pcg/ir/graph.h"
#include "pcg/schedule/schedule.h"

namespace isomer {

// The contents of every buffer that is unloaded (outputs, updated parameters, gradients), at the
// time it is, and of inputs at the end, where states are what they are next, from parameters and
// inputs drawn from `seed`. Each device runs its program in order, a communication when all of its
// group have come to it. Errors: a deadlock, a buffer that is read before it is written or does not
// hold what is read.
absl::StatusOr<std::map<BufferId, std::vector<PrimeField>>> RunSchedule(const Graph& graph,
                                                                        const Schedule& schedule,
                                                                        uint64_t seed);

}  // namespace isomer

#endif  // ISOMER_VERIFIER_MUTATION_SCHEDULE_RUN_H_
