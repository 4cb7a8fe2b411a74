#include "runtime/launch/children.h"

#include <netinet/in.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <thread>

#include "absl/strings/str_cat.h"

namespace isomer {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::milliseconds kLookAtChildren{10};
// A program that cannot be started, as shells have it.
constexpr int kExitNoProgram = 127;

// Since the first start: one that comes between two is for those that would come next.
volatile std::sig_atomic_t signals_to_pass_on = 0;
volatile std::sig_atomic_t last_signal = 0;

void PassOnSignal(int signal) {
  last_signal = signal;
  signals_to_pass_on = signals_to_pass_on + 1;
}

std::string SignalName(int signal) {
  const char* const name = sigabbrev_np(signal);
  return name == nullptr ? absl::StrCat("signal ", signal) : absl::StrCat("SIG", name);
}

// One that is free now; 0: there is none.
int32_t FreePort() {
  const int file = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  socklen_t size = sizeof address;
  int32_t port = 0;
  if (file >= 0 && bind(file, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0 &&
      getsockname(file, reinterpret_cast<sockaddr*>(&address), &size) == 0) {
    port = ntohs(address.sin_port);
  }
  if (file >= 0) close(file);
  return port;
}

struct Child {
  pid_t process = 0;
  bool has_ended = false;
  bool was_given_up = false;
  int status = 0;

  bool has_failed() const { return has_ended && (!WIFEXITED(status) || WEXITSTATUS(status) > 1); }
};

// In the child.
[[noreturn]] void Become(const ChildrenOptions& options, int32_t rank, int32_t port, pid_t parent) {
  prctl(PR_SET_PDEATHSIG, SIGTERM);
  if (getppid() != parent) _exit(kExitNoProgram);
  for (int signal : {SIGINT, SIGTERM}) std::signal(signal, SIG_DFL);
  if (options.are_ranks) {
    const std::string number = absl::StrCat(rank);
    setenv("RANK", number.c_str(), 1);
    setenv("LOCAL_RANK", number.c_str(), 1);
    setenv("WORLD_SIZE", absl::StrCat(options.count).c_str(), 1);
    setenv("MASTER_ADDR", "localhost", 1);
    setenv("MASTER_PORT", absl::StrCat(port).c_str(), 1);
    // None of another job is taken for one of this.
    setenv("TORCHELASTIC_RUN_ID", absl::StrCat("isomer-", parent, "-", port).c_str(), 1);
    setenv(kParentVariable, "1", 1);
    unsetenv("ISOMER_PORT");
    unsetenv("TORCHELASTIC_USE_AGENT_STORE");
  }
  std::vector<char*> arguments;
  for (const std::string& word : options.command)
    arguments.push_back(const_cast<char*>(word.data()));
  arguments.push_back(nullptr);
  execv(arguments[0], arguments.data());
  std::fprintf(stderr, "error: %s: %s\n", arguments[0], std::strerror(errno));
  _exit(kExitNoProgram);
}

class Children {
 public:
  explicit Children(const ChildrenOptions& options) : options_(options), children_(options.count) {}

  absl::Status Start() {
    const int32_t port = options_.are_ranks ? FreePort() : 0;
    if (options_.are_ranks && port == 0) return absl::UnavailableError("no port is free");
    std::fflush(nullptr);
    const pid_t parent = getpid();
    for (int32_t rank = 0; rank < options_.count; ++rank) {
      const pid_t process = fork();
      if (process == 0) Become(options_, rank, port, parent);
      if (process < 0) {
        const int error = errno;
        for (Child& child : children_) {
          if (child.process > 0) kill(child.process, SIGKILL);
          if (child.process > 0) waitpid(child.process, nullptr, 0);
        }
        return absl::UnavailableError(
            absl::StrCat("process ", rank, " cannot be started: ", std::strerror(error)));
      }
      children_[rank].process = process;
    }
    return absl::OkStatus();
  }

  // True: all have ended.
  bool Look() {
    bool all = true;
    for (Child& child : children_) {
      if (child.has_ended) continue;
      child.has_ended = waitpid(child.process, &child.status, WNOHANG) == child.process;
      all &= child.has_ended;
      if (child.has_failed() && !has_failed_) {
        has_failed_ = true;
        failed_ = Clock::now();
      }
    }
    const bool is_over = has_failed_ && Clock::now() - failed_ > options_.patience;
    for (Child& child : children_) {
      if (!is_over || child.has_ended || child.was_given_up) continue;
      child.was_given_up = true;
      kill(child.process, SIGKILL);
    }
    return all;
  }

  void PassOn(int signal) {
    for (const Child& child : children_) {
      if (!child.has_ended) kill(child.process, signal);
    }
  }

  ChildrenEnd End() const {
    ChildrenEnd end;
    end.code = -1;
    std::vector<std::string> killed, given_up;
    for (size_t r = 0; r < children_.size(); ++r) {
      const int status = children_[r].status;
      const std::string name = options_.are_ranks ? absl::StrCat("rank ", r) : "the run";
      if (WIFEXITED(status)) {
        if (WEXITSTATUS(status) != kExitUnmet) end.code = std::max(end.code, WEXITSTATUS(status));
      } else if (children_[r].was_given_up) {
        given_up.push_back(absl::StrCat(name, " did not end, and was killed"));
      } else {
        killed.push_back(absl::StrCat(name, " was killed by ", SignalName(WTERMSIG(status))));
      }
    }
    // Who was given up had waited for who was killed.
    if (!killed.empty()) end.killed = killed[0];
    if (killed.empty() && !given_up.empty()) end.killed = given_up[0];
    return end;
  }

 private:
  const ChildrenOptions& options_;
  std::vector<Child> children_;
  bool has_failed_ = false;
  Clock::time_point failed_;
};

}  // namespace

absl::StatusOr<ChildrenEnd> RunChildren(const ChildrenOptions& options) {
  for (int signal : {SIGINT, SIGTERM}) {
    struct sigaction action = {};
    action.sa_handler = PassOnSignal;
    sigaction(signal, &action, nullptr);
  }
  if (last_signal != 0) return ChildrenEnd{-1, "", SignalName(last_signal)};
  Children children(options);
  if (const absl::Status status = children.Start(); !status.ok()) return status;
  int passed_on = 0;
  while (!children.Look()) {
    if (passed_on < signals_to_pass_on) {
      passed_on = signals_to_pass_on;
      children.PassOn(SIGTERM);
    }
    std::this_thread::sleep_for(kLookAtChildren);
  }
  ChildrenEnd end = children.End();
  if (last_signal != 0) end.stopped_by = SignalName(last_signal);
  return end;
}

}  // namespace isomer
