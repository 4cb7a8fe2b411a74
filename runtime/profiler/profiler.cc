#include "runtime/profiler/profiler.h"

#include <algorithm>
#include <cmath>
#include <memory>

#include "absl/strings/str_cat.h"
#include "pcg/profile/work.h"
#include "pcg/support/status_macros.h"
#include "runtime/device/caches.h"
#include "runtime/device/statistics.h"
#include "runtime/profiler/kernel_timer.h"

namespace isomer {
namespace {

struct Subject {
  const std::string* key;
  const ProfiledKernel* kernel;
  std::unique_ptr<KernelTimer> timer;
  std::vector<double> samples = {};  // of all ranks
  double spent_us = 0;               // per rank
};

absl::Status RunRound(const ProfileRank& rank, const ProfilerOptions& options,
                      const std::vector<Subject*>& subjects, CacheSweeper* sweeper,
                      DeviceClock* clock, std::vector<double>* times) {
  if (options.state == CacheState::kCold && clock == nullptr) sweeper->SweepNear();
  for (Subject* subject : subjects) {
    if (options.state == CacheState::kHot) {
      ISOMER_RETURN_IF_ERROR(subject->timer->RunUs().status());
    } else if (options.state == CacheState::kStep) {
      ISOMER_RETURN_IF_ERROR(subject->timer->SetCaches(sweeper));
    } else if (clock != nullptr) {
      ISOMER_RETURN_IF_ERROR(clock->SetCaches({}));
    }
    ISOMER_RETURN_IF_ERROR(rank.Meet());
    ISOMER_ASSIGN_OR_RETURN(const double us, subject->timer->RunUs());
    times->push_back(us);
  }
  return absl::OkStatus();
}

// The time of a kernel, from its samples.
absl::StatusOr<KernelTime> TimeOf(const Subject& subject) {
  const ProfiledKernel& kernel = *subject.kernel;
  const Spread spread = SpreadOf(subject.samples);
  KernelTime time{.median_us = spread.median,
                  .lower_us = spread.lower,
                  .upper_us = spread.upper,
                  .repetitions = static_cast<int>(subject.samples.size())};
  ISOMER_ASSIGN_OR_RETURN(const Sharding sharding, InferSharding(kernel.op, kernel.operands));
  const bool gradient = !kernel.wanted.empty();
  const Work work = gradient ? GradientWork(kernel.op, sharding, kernel.operands, kernel.wanted)
                             : ForwardWork(kernel.op, sharding, kernel.operands);
  time.flops = work.flops;
  time.bytes = work.bytes;
  time.workspace_bytes = subject.timer->workspace_bytes();
  time.library_bytes = subject.timer->library_bytes();
  time.family = KernelFamily(kernel.op, kernel.operands, gradient);
  return time;
}

}  // namespace

absl::StatusOr<CacheState> ParseCacheState(absl::string_view name) {
  if (name == "hot") return CacheState::kHot;
  if (name == "cold") return CacheState::kCold;
  if (name == "step") return CacheState::kStep;
  return absl::InvalidArgumentError(
      absl::StrCat("--cache=", name, ": there are step, cold and hot"));
}

bool IsSettled(const std::vector<double>& samples, double precision) {
  // Of the median of n samples of a normal distribution: 1.25 sigma / sqrt(n), sigma from the
  // quartiles, which lie 1.35 sigma apart.
  const Spread spread = SpreadOf(samples);
  const double error = 1.25 * (spread.upper - spread.lower) / 1.35 /
                       std::sqrt(static_cast<double>(std::max<size_t>(samples.size(), 1)));
  return error <= precision * spread.median;
}

absl::StatusOr<std::vector<ProfileBatch>> BatchesOf(const ProfiledKernels& kernels) {
  constexpr int64_t kMostBytes = int64_t{256} << 20;
  constexpr size_t kMostKernels = 64;
  std::vector<ProfileBatch> batches;
  int64_t bytes = 0;
  for (const auto& [key, kernel] : kernels) {
    ISOMER_ASSIGN_OR_RETURN(const int64_t own_bytes, KernelTimer::BytesOf(kernel));
    if (batches.empty() || bytes + own_bytes > kMostBytes ||
        batches.back().size() == kMostKernels) {
      batches.emplace_back();
      bytes = 0;
    }
    batches.back().push_back({key, kernel});
    bytes += own_bytes;
  }
  return batches;
}

absl::StatusOr<std::map<std::string, KernelTime>> MeasureKernels(const ProfileRank& rank,
                                                                 const ProfileBatch& batch,
                                                                 const ProfilerOptions& options) {
  CacheSweeper sweeper(CachesOfDevice(static_cast<int64_t>(rank.all.size())));
  ISOMER_ASSIGN_OR_RETURN(const std::unique_ptr<DeviceClock> clock,
                          DeviceClock::Make(rank.backend));
  // One arena, as a device has in a step.
  int64_t bytes = 0;
  for (const auto& [key, kernel] : batch) {
    ISOMER_ASSIGN_OR_RETURN(const int64_t own_bytes, KernelTimer::BytesOf(kernel));
    bytes += own_bytes;
  }
  ISOMER_ASSIGN_OR_RETURN(const Backend::Memory arena, rank.backend->Allocate(bytes));
  std::vector<Subject> subjects;
  bytes = 0;
  for (const auto& [key, kernel] : batch) {
    ISOMER_ASSIGN_OR_RETURN(
        auto timer, KernelTimer::Make(kernel, rank.backend, arena.get() + bytes, clock.get()));
    ISOMER_ASSIGN_OR_RETURN(const int64_t own_bytes, KernelTimer::BytesOf(kernel));
    bytes += own_bytes;
    subjects.push_back({&key, &kernel, std::move(timer)});
  }
  int64_t workspace_bytes = 0;
  for (const Subject& subject : subjects) {
    workspace_bytes = std::max(workspace_bytes, subject.timer->workspace_bytes());
  }
  ISOMER_ASSIGN_OR_RETURN(const Backend::Memory workspace, rank.backend->Allocate(workspace_bytes));
  for (Subject& subject : subjects) subject.timer->set_workspace(workspace.get());
  std::vector<Subject*> open;
  for (Subject& subject : subjects) open.push_back(&subject);
  std::vector<double> times;
  // The round that warms up does not count.
  ISOMER_RETURN_IF_ERROR(RunRound(rank, options, open, &sweeper, clock.get(), &times));
  for (int round = 1; round <= options.most_rounds && !open.empty(); ++round) {
    times.clear();
    ISOMER_RETURN_IF_ERROR(RunRound(rank, options, open, &sweeper, clock.get(), &times));
    ISOMER_ASSIGN_OR_RETURN(const std::vector<double> all, rank.Gather(times));
    const size_t ranks = rank.all.size();
    for (size_t s = 0; s < open.size(); ++s) {
      for (size_t r = 0; r < ranks; ++r) {
        open[s]->samples.push_back(all[r * open.size() + s]);
        open[s]->spent_us += all[r * open.size() + s] / static_cast<double>(ranks);
      }
    }
    if (round < options.least_rounds) continue;
    std::erase_if(open, [&](const Subject* subject) {
      return IsSettled(subject->samples, options.precision) ||
             subject->spent_us > options.seconds_per_kernel * 1e6;
    });
  }
  std::map<std::string, KernelTime> result;
  for (const Subject& subject : subjects) {
    ISOMER_ASSIGN_OR_RETURN(result[*subject.key], TimeOf(subject));
  }
  return result;
}

}  // namespace isomer
