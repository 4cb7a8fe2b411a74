#include "runtime/profiler/profile_rank.h"

#include <cstring>
#include <exception>
#include <memory>
#include <numeric>
#include <thread>
#include <utility>

#include "pcg/support/status_macros.h"
#include "runtime/communication/thread_communicator.h"
#include "runtime/device/pinning.h"

namespace isomer {

absl::StatusOr<std::vector<double>> ProfileRank::Gather(absl::Span<const double> mine) const {
  const absl::string_view bytes(reinterpret_cast<const char*>(mine.data()),
                                mine.size() * sizeof(double));
  ISOMER_ASSIGN_OR_RETURN(const std::vector<std::string> gathered, control->Gather(bytes));
  std::vector<double> numbers(mine.size() * all.size());
  for (size_t r = 0; r < gathered.size(); ++r) {
    std::memcpy(numbers.data() + r * mine.size(), gathered[r].data(), bytes.size());
  }
  return numbers;
}

absl::StatusOr<ProfileRank> WithDeviceCommunicator(const ProfileRank& rank,
                                                   std::unique_ptr<Communicator>* owner) {
  ProfileRank with = rank;
  if (rank.backend->operations().shares_host_memory()) return with;
  CommunicationGroups groups;
  groups.has_messages = rank.all.size() > 1;
  for (size_t members = 2; members <= rank.all.size(); ++members) {
    groups.of_collectives.insert(
        {rank.all.begin(), rank.all.begin() + static_cast<int64_t>(members)});
  }
  constexpr std::chrono::seconds kTimeout(60);
  ISOMER_ASSIGN_OR_RETURN(*owner, rank.backend->MakeCommunicator(rank.control, groups, kTimeout));
  with.communicator = owner->get();
  return with;
}

absl::Status RunOnThreads(int32_t ranks, bool pin, Backend* backend,
                          const std::function<absl::Status(const ProfileRank&)>& work) {
  const auto communicators = MakeThreadCommunicators(ranks);
  std::vector<int32_t> all(ranks);
  std::iota(all.begin(), all.end(), 0);
  std::vector<absl::Status> results(ranks);
  std::vector<std::thread> threads;
  for (int32_t r = 0; r < ranks; ++r) {
    threads.emplace_back([&, r] {
      if (pin) PinThisThread(r, ranks);
      try {
        backend->EnterDevice(r, ranks);
        results[r] = work({backend, communicators[r].get(), communicators[r].get(), all});
      } catch (const std::exception& e) {
        results[r] = absl::InternalError(e.what());
      }
      // Wakes those that wait for this one.
      if (!results[r].ok()) communicators[r]->Abort(results[r]);
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const absl::Status& result : results) ISOMER_RETURN_IF_ERROR(result);
  return absl::OkStatus();
}

}  // namespace isomer
