// isomer-verify mutate.
#ifndef ISOMER_VERIFIER_MUTATION_COMMAND_H_
#define ISOMER_VERIFIER_MUTATION_COMMAND_H_

#include <string>

#include "absl/status/statusor.h"

namespace isomer {

// Mutates declarations, the rules of the file, plans, schedules and programs, prints the report,
// and returns the exit code: 1 if a mutant that changes a meaning is accepted.
absl::StatusOr<int> RunMutateCommand(const std::string& rules_path, int jobs);

}  // namespace isomer

#endif  // ISOMER_VERIFIER_MUTATION_COMMAND_H_
