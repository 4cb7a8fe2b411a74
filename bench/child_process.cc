#include "bench/child_process.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <cstdio>
#include <memory>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace isomer {
namespace {

constexpr int kCannotStart = 127;

using File = std::unique_ptr<std::FILE, int (*)(std::FILE*)>;

double SecondsOf(const timeval& time) {
  return static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_usec);
}

[[noreturn]] void Become(const std::vector<std::string>& command, int err) {
  const int null = open("/dev/null", O_RDWR | O_CLOEXEC);
  dup2(null, STDIN_FILENO);
  dup2(null, STDOUT_FILENO);
  dup2(err, STDERR_FILENO);
  std::vector<char*> arguments;
  for (const std::string& word : command) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  execvp(arguments[0], arguments.data());
  _exit(kCannotStart);
}

std::string LastLine(std::FILE* file) {
  std::rewind(file);
  std::string text;
  std::array<char, 4096> block;
  for (size_t got; (got = std::fread(block.data(), 1, block.size(), file)) > 0;) {
    text.append(block.data(), got);
  }
  const std::vector<std::string> lines =
      absl::StrSplit(text, absl::ByAnyChar("\r\n"), absl::SkipWhitespace());
  return lines.empty() ? "" : lines.back();
}

}  // namespace

absl::StatusOr<ChildRun> RunChild(const std::vector<std::string>& command, double limit_s) {
  const File err(std::tmpfile(), std::fclose);
  if (err == nullptr) return absl::InternalError("no temporary file can be made");
  const auto start = std::chrono::steady_clock::now();
  const auto seconds = [start] {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  };
  const pid_t child = fork();
  if (child < 0) return absl::InternalError("no process can be started");
  if (child == 0) Become(command, fileno(err.get()));
  ChildRun run;
  int status = 0;
  rusage usage{};
  while (wait4(child, &status, limit_s > 0 ? WNOHANG : 0, &usage) == 0) {
    if (!run.timed_out && seconds() > limit_s) {
      run.timed_out = true;
      kill(child, SIGKILL);
    }
    usleep(1000);
  }
  run.seconds = seconds();
  run.cpu_seconds = SecondsOf(usage.ru_utime) + SecondsOf(usage.ru_stime);
  run.peak_bytes = int64_t{usage.ru_maxrss} * 1024;
  run.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  run.complaint = LastLine(err.get());
  if (run.exit_code == kCannotStart) {
    return absl::NotFoundError(absl::StrCat(command[0], ": cannot be started"));
  }
  return run;
}

}  // namespace isomer
