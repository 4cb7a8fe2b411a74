#include "runtime/profile_rank.h"

#include <exception>
#include <memory>
#include <numeric>
#include <thread>
#include <utility>

#include "pcg/support/status_macros.h"
#include "runtime/pinning.h"
#include "runtime/thread_communicator.h"

namespace isomer {

absl::Status ProfileRank::Meet() const {
  float nothing = 0;
  return communicator->AllReduce(all, DataType::kFloat32, &nothing, 1);
}

absl::StatusOr<std::vector<double>> ProfileRank::Gather(absl::Span<const double> mine) const {
  std::vector<double> numbers(mine.size() * all.size());
  ISOMER_RETURN_IF_ERROR(communicator->AllGather(
      all, mine.data(), numbers.data(), static_cast<int64_t>(mine.size() * sizeof(double))));
  return numbers;
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
        results[r] = work({backend, communicators[r].get(), all});
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
