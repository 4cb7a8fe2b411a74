#include "pcg/support/forked_child.h"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "absl/strings/str_cat.h"

namespace isomer {

absl::Status CannotStartChild() {
  return absl::InternalError(absl::StrCat("cannot start a process: ", std::strerror(errno)));
}

absl::StatusOr<pid_t> ForkChild(absl::FunctionRef<void()> run) {
  const pid_t parent = getpid();
  const pid_t child = fork();
  if (child < 0) return CannotStartChild();
  if (child > 0) return child;
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(1);  // It died before the line above.
  run();
  _exit(0);
}

std::string JoinChild(pid_t child) {
  int state = 0;
  pid_t joined;
  while ((joined = waitpid(child, &state, 0)) < 0 && errno == EINTR) {
  }
  if (joined > 0 && WIFEXITED(state) && WEXITSTATUS(state) == 0) return "";
  return WIFSIGNALED(state) ? strsignal(WTERMSIG(state)) : "it exited";
}

}  // namespace isomer
