#include "runtime/device/last_resort.h"

#include <mutex>
#include <thread>
#include <utility>

namespace isomer {
namespace {

// Never destroyed: a thread may use it while the process ends.
struct Resort {
  std::mutex mutex;
  std::function<void(const absl::Status&)> end;
  bool is_armed = false;
};

Resort& TheResort() {
  static auto* const resort = new Resort;
  return *resort;
}

}  // namespace

void SetLastResort(std::function<void(const absl::Status& why)> end) {
  const std::lock_guard lock(TheResort().mutex);
  TheResort().end = std::move(end);
}

void ArmLastResort(const absl::Status& why) {
  const std::lock_guard lock(TheResort().mutex);
  if (TheResort().end == nullptr || std::exchange(TheResort().is_armed, true)) return;
  std::thread([why, end = TheResort().end] {
    std::this_thread::sleep_for(kTimeToEnd);
    end(why);
  }).detach();
}

}  // namespace isomer
