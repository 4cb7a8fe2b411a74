// isomer-run as the parent of those that run: --communicator=processes and --restarts.
#ifndef ISOMER_RUNTIME_LAUNCH_MAIN_H_
#define ISOMER_RUNTIME_LAUNCH_MAIN_H_

#include <string>

#include "absl/status/statusor.h"

namespace isomer {

// Whether the flags ask for children, of which this process is the parent. Refuses what does not go
// together.
absl::StatusOr<bool> IsParent();
// Starts them with the flags of this process, waits for them, and starts them again as --restarts
// says; returns the exit code.
absl::StatusOr<int> RunAsParent(const std::string& spec);

}  // namespace isomer

#endif  // ISOMER_RUNTIME_LAUNCH_MAIN_H_
