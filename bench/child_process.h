// A program run as its user would, with what it took.
#ifndef ISOMER_BENCH_CHILD_PROCESS_H_
#define ISOMER_BENCH_CHILD_PROCESS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace isomer {

struct ChildRun {
  int exit_code = 0;  // -1: ended by a signal
  bool timed_out = false;
  double seconds = 0;      // wall
  double cpu_seconds = 0;  // of all its threads
  int64_t peak_bytes = 0;  // resident
  std::string complaint;   // the last line that it printed on stderr
};

// Runs command[0] (a path, or a name on the PATH) with the rest as arguments, without input; what
// it prints on stdout is dropped. It is killed after `limit_s`, if that is above 0.
// Errors: the program cannot be started.
absl::StatusOr<ChildRun> RunChild(const std::vector<std::string>& command, double limit_s = 0);

}  // namespace isomer

#endif  // ISOMER_BENCH_CHILD_PROCESS_H_
