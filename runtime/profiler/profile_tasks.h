// Measures what is no kernel, by letting the executor run made-up schedules: fill, accumulate,
// local moves and updates, and the collectives of a communicator, over sizes; packing included in
// those that nearly always pack.
#ifndef ISOMER_RUNTIME_PROFILER_PROFILE_TASKS_H_
#define ISOMER_RUNTIME_PROFILER_PROFILE_TASKS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "pcg/profile/profile.h"
#include "pcg/schedule/schedule.h"
#include "runtime/device/caches.h"
#include "runtime/profiler/profile_rank.h"
#include "runtime/profiler/profiler.h"

namespace isomer {

// A table of times to be measured.
struct ProfiledTask {
  TaskKind kind;
  int64_t group_size = 1;
  // Of updates: where they find what they update, which steps have touched long ago.
  CacheLevel found = CacheLevel::kMemory;
  // "fill", or, of a communication, "all_reduce threads 2".
  std::string Key(absl::string_view communicator) const;
};
// All kinds: on one device, and in groups of 2 to `num_devices`.
std::vector<ProfiledTask> TasksToProfile(int64_t num_devices);

// A schedule of one such task on every device or, of a communication, among the first `group_size`
// of them; its buffers have about so many elements.
Schedule ScheduleOfSize(const ProfiledTask& task, int64_t num_devices, int64_t elements);

// To be called on all ranks; all get the same. A communication takes from when the last rank came
// until the last had what it wanted.
absl::StatusOr<SizeTable> MeasureTask(const ProfileRank& rank, const ProfiledTask& task,
                                      const ProfilerOptions& options);

// What the executor adds to the time of a kernel.
absl::StatusOr<double> MeasureTaskOverheadUs(const ProfileRank& rank);

}  // namespace isomer

#endif  // ISOMER_RUNTIME_PROFILER_PROFILE_TASKS_H_
