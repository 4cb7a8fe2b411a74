// Measuring is SPMD, like what is measured: all devices do the same at the same time, and agree on
// what they saw.
#ifndef ISOMER_RUNTIME_PROFILER_PROFILE_RANK_H_
#define ISOMER_RUNTIME_PROFILER_PROFILE_RANK_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "runtime/device/backend.h"
#include "runtime/device/communicator.h"

namespace isomer {

struct ProfileRank {
  Backend* backend = nullptr;
  Communicator* communicator = nullptr;
  ControlPlane* control = nullptr;
  std::vector<int32_t> all = {};  // ranks

  int32_t rank() const { return control->rank(); }
  // Leaves when all have come.
  absl::Status Meet() const { return control->Meet(); }
  // The numbers of all ranks, side by side. REQUIRES: as many on every rank.
  absl::StatusOr<std::vector<double>> Gather(absl::Span<const double> mine) const;
};

// The rank with a communicator between its devices, where they are not the host's; `owner` gets it.
// To be called on all ranks, by their devices' threads.
absl::StatusOr<ProfileRank> WithDeviceCommunicator(const ProfileRank& rank,
                                                   std::unique_ptr<Communicator>* owner);

// Runs `work` on so many threads, each a rank of an in-process communicator and, with `pin` and as
// many cores, on a core of its own. The first error ends all.
absl::Status RunOnThreads(int32_t ranks, bool pin, Backend* backend,
                          const std::function<absl::Status(const ProfileRank&)>& work);

}  // namespace isomer

#endif  // ISOMER_RUNTIME_PROFILER_PROFILE_RANK_H_
