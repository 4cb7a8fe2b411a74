#include <numeric>

#include "pcg/support/status_macros.h"
#include "runtime/device/communicator.h"

namespace isomer {
namespace {

std::vector<int32_t> AllRanks(const Communicator& communicator) {
  std::vector<int32_t> all(communicator.num_ranks());
  std::iota(all.begin(), all.end(), 0);
  return all;
}

}  // namespace

absl::Status HostCommunicator::Meet() {
  const char here = 0;
  std::string all(num_ranks(), 0);
  return AllGather(AllRanks(*this), &here, all.data(), 1);
}

absl::StatusOr<std::vector<std::string>> HostCommunicator::Gather(absl::string_view mine) {
  const int64_t bytes = static_cast<int64_t>(mine.size());
  std::vector<int64_t> sizes(num_ranks());
  ISOMER_RETURN_IF_ERROR(AllGather(AllRanks(*this), &bytes, sizes.data(), sizeof bytes));
  std::vector<std::string> all(num_ranks());
  std::vector<Send> sends;
  std::vector<Receive> receives;
  for (int32_t other = 0; other < num_ranks(); ++other) {
    if (other == rank()) {
      all[other] = std::string(mine);
      continue;
    }
    all[other].resize(sizes[other]);
    sends.push_back({other, mine.data(), bytes});
    receives.push_back({other, all[other].data(), sizes[other]});
  }
  ISOMER_RETURN_IF_ERROR(Exchange(sends, receives));
  return all;
}

absl::Status HostCommunicator::Exchange(absl::Span<const Send> sends,
                                        absl::Span<const Receive> receives) {
  return SendReceive(AllRanks(*this), sends, receives);
}

}  // namespace isomer
