#include "runtime/profiler/profile_session.h"

#include <chrono>
#include <optional>

#include "absl/strings/str_cat.h"
#include "pcg/support/file.h"
#include "pcg/support/progress.h"
#include "pcg/support/status_macros.h"

namespace isomer {

int64_t MissingTimes::num_kernels() const {
  int64_t count = 0;
  for (const ProfileBatch& batch : batches) count += static_cast<int64_t>(batch.size());
  return count;
}

absl::StatusOr<MissingTimes> FindMissing(const Profile& profile, const ProfiledKernels& kernels,
                                         const std::vector<ProfiledTask>& tasks,
                                         absl::string_view communicator) {
  ProfiledKernels lacking;
  for (const auto& [key, kernel] : kernels) {
    if (!profile.kernels.contains(key)) lacking.emplace(key, kernel);
  }
  MissingTimes missing;
  ISOMER_ASSIGN_OR_RETURN(missing.batches, BatchesOf(lacking));
  for (const ProfiledTask& task : tasks) {
    if (profile.FindTable(task.Key(communicator)) == nullptr) missing.tasks.push_back(task);
  }
  missing.overhead = profile.task_overhead_us == 0;
  return missing;
}

absl::StatusOr<Profile> OpenProfile(const std::string& path, const ProfiledDevice& device,
                                    bool remeasure) {
  Profile empty;
  empty.device = device;
  if (remeasure || absl::IsNotFound(ReadFile(path).status())) return empty;
  ISOMER_ASSIGN_OR_RETURN(Profile profile, LoadProfile(path));
  if (profile.device != device) {
    return absl::InvalidArgumentError(
        absl::StrCat(path, ": is of ", profile.device.ToString(), ", and this is ",
                     device.ToString(), "; give another --out, or --remeasure to begin anew"));
  }
  return profile;
}

absl::Status MeasureMissing(const ProfileRank& rank, const MissingTimes& missing,
                            absl::string_view communicator, const ProfilerOptions& options,
                            const std::string& path, Profile* profile) {
  using Clock = std::chrono::steady_clock;
  constexpr std::chrono::seconds kBetweenWrites(5);
  const bool writes = rank.rank() == 0;
  std::optional<Progress> progress;
  if (writes) {
    progress.emplace("profile", missing.num_kernels() + static_cast<int64_t>(missing.tasks.size()));
  }
  Clock::time_point written = Clock::now();
  auto done = [&](int64_t count) {
    if (!writes) return absl::OkStatus();
    progress->Advance(count);
    if (Clock::now() - written < kBetweenWrites) return absl::OkStatus();
    written = Clock::now();
    return SaveProfile(path, *profile);
  };
  if (missing.overhead) {
    ISOMER_ASSIGN_OR_RETURN(profile->task_overhead_us, MeasureTaskOverheadUs(rank));
  }
  for (const ProfiledTask& task : missing.tasks) {
    ISOMER_ASSIGN_OR_RETURN(profile->tables[task.Key(communicator)],
                            MeasureTask(rank, task, options));
    ISOMER_RETURN_IF_ERROR(done(1));
  }
  for (const ProfileBatch& batch : missing.batches) {
    ISOMER_ASSIGN_OR_RETURN(auto times, MeasureKernels(rank, batch, options));
    profile->kernels.merge(times);
    ISOMER_RETURN_IF_ERROR(done(static_cast<int64_t>(batch.size())));
  }
  return writes ? SaveProfile(path, *profile) : absl::OkStatus();
}

}  // namespace isomer
