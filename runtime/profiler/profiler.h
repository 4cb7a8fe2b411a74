// Measures kernels in the state in which a step runs them.
//
// A step runs each of its kernels once: when a kernel's turn comes, those before it have left some
// of what it reads, and of the memory that its results reuse, in the near cache, some in the last,
// and the rest in memory; and the other devices run the same kernel beside it. A loop over one
// kernel measures none of that. So kernels are measured in rounds: each round runs every kernel of
// a batch once, on buffers of its own, which have been brought to where steps leave them (reuse.h),
// on all devices at the same moment.
// bench/README.md ("Profiles") has what the alternatives predict of real steps.
//
// Rounds go on until the standard error of a kernel's median is small or its share of time is
// spent; noise that comes and goes touches all kernels of a batch alike.
#ifndef ISOMER_RUNTIME_PROFILER_PROFILER_H_
#define ISOMER_RUNTIME_PROFILER_PROFILER_H_

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "pcg/profile/profile.h"
#include "runtime/profiler/profile_calls.h"
#include "runtime/profiler/profile_rank.h"

namespace isomer {

enum class CacheState {
  kHot,   // as the last run of the same kernel left it
  kCold,  // the nearest are swept
  kStep,  // as tasks find them in a step (KernelTimer::SetCaches)
};
absl::StatusOr<CacheState> ParseCacheState(absl::string_view name);

struct ProfilerOptions {
  CacheState state = CacheState::kStep;
  int least_rounds = 9, most_rounds = 100;
  double precision = 0.01;          // of the median: its standard error
  double seconds_per_kernel = 0.5;  // on each device; the least rounds are run in any case
};

// Kernels that are measured together: so few that their buffers fit.
using ProfileBatch = std::vector<std::pair<std::string, ProfiledKernel>>;
absl::StatusOr<std::vector<ProfileBatch>> BatchesOf(const ProfiledKernels& kernels);

// By kernel key. To be called on all ranks; all get the same.
absl::StatusOr<std::map<std::string, KernelTime>> MeasureKernels(const ProfileRank& rank,
                                                                 const ProfileBatch& batch,
                                                                 const ProfilerOptions& options);

// Whether so many samples say the median well enough.
bool IsSettled(const std::vector<double>& samples, double precision);

}  // namespace isomer

#endif  // ISOMER_RUNTIME_PROFILER_PROFILER_H_
