// A profile grows: what it has is kept, what it lacks is measured, and it is written now and then.
#ifndef ISOMER_RUNTIME_PROFILER_PROFILE_SESSION_H_
#define ISOMER_RUNTIME_PROFILER_PROFILE_SESSION_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "pcg/profile/profile.h"
#include "runtime/profiler/profile_calls.h"
#include "runtime/profiler/profile_rank.h"
#include "runtime/profiler/profile_tasks.h"
#include "runtime/profiler/profiler.h"

namespace isomer {

// What a profile lacks.
struct MissingTimes {
  std::vector<ProfileBatch> batches;
  std::vector<ProfiledTask> tasks;
  bool overhead = false;
  int64_t num_kernels() const;
  bool empty() const { return batches.empty() && tasks.empty() && !overhead; }
};
absl::StatusOr<MissingTimes> FindMissing(const Profile& profile, const ProfiledKernels& kernels,
                                         const std::vector<ProfiledTask>& tasks,
                                         absl::string_view communicator);

// The profile at `path`, to be added to; an empty one of `device` if there is no such file, or with
// `remeasure`. Errors: the file is damaged, or of another device.
absl::StatusOr<Profile> OpenProfile(const std::string& path, const ProfiledDevice& device,
                                    bool remeasure);

// Measures what is missing and adds it to `profile`, on all ranks; rank 0 writes it to `path` every
// few seconds and at the end, so that what was measured stays when the rest is interrupted.
absl::Status MeasureMissing(const ProfileRank& rank, const MissingTimes& missing,
                            absl::string_view communicator, const ProfilerOptions& options,
                            const std::string& path, Profile* profile);

}  // namespace isomer

#endif  // ISOMER_RUNTIME_PROFILER_PROFILE_SESSION_H_
