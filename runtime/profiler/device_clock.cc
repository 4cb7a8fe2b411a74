#include "runtime/profiler/device_clock.h"

#include <algorithm>

#include "pcg/schedule/program/program.h"
#include "pcg/support/status_macros.h"

namespace isomer {
namespace {

constexpr int32_t kBegin = 0, kEnd = 1;  // marks

}  // namespace

absl::StatusOr<std::unique_ptr<DeviceClock>> DeviceClock::Make(Backend* backend) {
  ISOMER_ASSIGN_OR_RETURN(std::unique_ptr<DeviceQueues> queues, backend->MakeQueues());
  if (queues == nullptr) return nullptr;
  // When all of it is written, hardly anything else is left.
  ISOMER_ASSIGN_OR_RETURN(const CacheSizes caches, backend->Caches(/*devices=*/1));
  const int64_t bytes = 2 * std::max<int64_t>(caches.last, 1);
  ISOMER_ASSIGN_OR_RETURN(Backend::Memory displacing, backend->Allocate(bytes));
  return std::unique_ptr<DeviceClock>(
      new DeviceClock(backend, std::move(queues), std::move(displacing), bytes));
}

absl::Status DeviceClock::SetCaches(absl::Span<const Region> near) {
  ISOMER_RETURN_IF_ERROR(queues_->Enter(kComputeQueue));
  const LeavesQueues leaves(queues_.get());
  ISOMER_RETURN_IF_ERROR(
      operations_.Fill(0, displacing_bytes_, DataType::kBool, displacing_.get()));
  for (const Region& region : near) {
    const int64_t bytes = std::min(region.bytes, displacing_bytes_);
    ISOMER_RETURN_IF_ERROR(operations_.Copy(region.data, bytes, displacing_.get()));
  }
  return queues_->Finish([] { return absl::OkStatus(); });
}

absl::StatusOr<double> DeviceClock::TimeUs(const std::function<absl::Status()>& give) {
  ISOMER_RETURN_IF_ERROR(queues_->Enter(kComputeQueue));
  const LeavesQueues leaves(queues_.get());
  ISOMER_RETURN_IF_ERROR(queues_->Hold());
  const absl::Status given = [&]() -> absl::Status {
    ISOMER_RETURN_IF_ERROR(queues_->Mark(kBegin));
    ISOMER_RETURN_IF_ERROR(give());
    return queues_->Mark(kEnd);
  }();
  queues_->Release();
  ISOMER_RETURN_IF_ERROR(given);
  ISOMER_RETURN_IF_ERROR(queues_->Finish([] { return absl::OkStatus(); }));
  return queues_->ElapsedUs(kBegin, kEnd);
}

}  // namespace isomer
