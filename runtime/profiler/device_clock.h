// Times of what a device is given, by its own clock.
#ifndef ISOMER_RUNTIME_PROFILER_DEVICE_CLOCK_H_
#define ISOMER_RUNTIME_PROFILER_DEVICE_CLOCK_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "runtime/device/backend.h"

namespace isomer {

class DeviceClock {
 public:
  // Of the device of this thread. Null: it does at once what it is given, and the host's clock is
  // its own.
  static absl::StatusOr<std::unique_ptr<DeviceClock>> Make(Backend* backend);

  struct Region {
    const void* data = nullptr;
    int64_t bytes = 0;
  };
  // What its caches have is overwritten, but for what is `near`, which is read after that.
  absl::Status SetCaches(absl::Span<const Region> near);
  // How long the device takes for what `give` gives it, all of which is there when it begins.
  absl::StatusOr<double> TimeUs(const std::function<absl::Status()>& give);

 private:
  DeviceClock(Backend* backend, std::unique_ptr<DeviceQueues> queues, Backend::Memory displacing,
              int64_t displacing_bytes)
      : operations_(backend->operations()),
        queues_(std::move(queues)),
        displacing_(std::move(displacing)),
        displacing_bytes_(displacing_bytes) {}

  DeviceOperations& operations_;
  const std::unique_ptr<DeviceQueues> queues_;
  const Backend::Memory displacing_;  // more than a cache holds
  const int64_t displacing_bytes_;
};

}  // namespace isomer

#endif  // ISOMER_RUNTIME_PROFILER_DEVICE_CLOCK_H_
