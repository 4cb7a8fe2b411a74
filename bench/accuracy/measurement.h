// What isomer-run measures of a plan: step time, memory, and the time of every task.
#ifndef ISOMER_BENCH_ACCURACY_MEASUREMENT_H_
#define ISOMER_BENCH_ACCURACY_MEASUREMENT_H_

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace isomer {

// The programs, and a folder for what passes between them.
struct Programs {
  std::string bin;
  std::string work;
};

// Runs bin/`program`; with `processes` > 0 as so many under mpirun. The error is its last line.
absl::Status RunProgramOf(const Programs& programs, int processes, const std::string& program,
                          const std::vector<std::string>& arguments);

// When a task ran on a device, in us since the first of the trace.
struct TracedTask {
  int32_t task = 0, device = 0;
  int step = 0;  // of those that were traced
  double start_us = 0, end_us = 0;
};

struct Measurement {
  double step_us = 0;  // the median of one run's steps
  int64_t peak_bytes = 0;
  std::vector<TracedTask> trace;  // of its last steps
};

// One run of a plan. `communicator`: "threads" or "mpi", with a process for each device.
absl::StatusOr<Measurement> MeasurePlan(const Programs& programs, const std::string& plan,
                                        const std::string& communicator, int devices, int steps);

}  // namespace isomer

#endif  // ISOMER_BENCH_ACCURACY_MEASUREMENT_H_
