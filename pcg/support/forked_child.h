#ifndef ISOMER_PCG_SUPPORT_FORKED_CHILD_H_
#define ISOMER_PCG_SUPPORT_FORKED_CHILD_H_

#include <sys/types.h>

#include <string>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"

namespace isomer {

// A child process that runs `run`, which does not return, and does not outlive this one. Errors: it
// cannot be started.
absl::StatusOr<pid_t> ForkChild(absl::FunctionRef<void()> run);

// Waits until the child has ended. "": it was done, with exit code 0; else why it ended.
std::string JoinChild(pid_t child);

// That a child, or what it needs, cannot be made: by errno.
absl::Status CannotStartChild();

}  // namespace isomer

#endif  // ISOMER_PCG_SUPPORT_FORKED_CHILD_H_
