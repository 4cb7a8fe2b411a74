// Runs the program of a schedule without numbers: what every byte holds is a name of how it came
// about. Two runs in which all tasks read the same names, and leave the same to the host, compute
// the same, whatever the tasks compute.
#ifndef ISOMER_VERIFIER_MUTATION_PROGRAM_RUN_H_
#define ISOMER_VERIFIER_MUTATION_PROGRAM_RUN_H_

#include <cstdint>
#include <map>
#include <utility>

#include "absl/status/statusor.h"
#include "pcg/schedule/program/program.h"

namespace isomer {

// By device and task: of commands, the name of what it reads there; of what the host unloads, the
// name of what it finds; of task -1, what inputs are at the end, where the next step finds states.
using ReadNames = std::map<std::pair<int32_t, int32_t>, uint64_t>;

// In an order drawn from `seed`: any command whose queue and waits allow it, a communication when
// all of its devices have come to it. The commands touch the bytes that they say they touch; what
// is in memory before is named by its place in the buffer.
// Errors: nothing can run any more, and some have not.
absl::StatusOr<ReadNames> RunProgramOnNames(const Schedule& schedule, const MemoryPlan& memory,
                                            const Program& program, uint64_t seed);

}  // namespace isomer

#endif  // ISOMER_VERIFIER_MUTATION_PROGRAM_RUN_H_
