#include "runtime/checkpoint/disk_progress.h"

#include <atomic>
#include <condition_variable>
#include <mutex>
#include <thread>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "runtime/device/last_resort.h"
#include "runtime/device/whereabouts.h"

namespace isomer {
namespace {

constexpr char kBusy[] = "busy ";
constexpr std::chrono::milliseconds kLookAtDisk{200};

std::atomic<int64_t> disk_calls = 0;
std::atomic<const char*> disk_call = "open";

}  // namespace

void NoteDiskCall(const char* call) {
  disk_call.store(call, std::memory_order_relaxed);
  disk_calls.store(disk_calls.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
}

std::string DiskWord() { return absl::StrCat(kBusy, disk_calls.load(), " ", disk_call.load()); }

bool IsDiskWord(absl::string_view word) { return absl::StartsWith(word, kBusy); }

absl::Status DiskWatch::Check(int32_t rank, absl::string_view word) {
  const auto now = std::chrono::steady_clock::now();
  Last& last = last_[rank];
  if (last.word != word) last = {std::string(word), now};
  if (timeout_.count() == 0 || now - last.since <= timeout_) return absl::OkStatus();
  const std::string call(word.substr(word.rfind(' ') + 1));
  return absl::UnavailableError(
      absl::StrFormat("rank %d has waited %.1f s for its disk (%s), %s: it does not answer", rank,
                      std::chrono::duration<double>(now - last.since).count(), call,
                      WhereaboutsText(CurrentWhereabouts())));
}

void GiveUpOnDisk(const absl::Status& status, ControlPlane* control) {
  ArmLastResort(status);
  if (control != nullptr) control->Abort(status);
}

absl::Status DoInTime(std::chrono::milliseconds timeout, ControlPlane* control,
                      const std::function<absl::Status()>& work) {
  if (timeout.count() == 0) return work();
  std::mutex mutex;
  std::condition_variable is_over;
  bool is_done = false;
  absl::Status status;
  std::thread thread([&] {
    absl::Status of_work = work();
    const std::lock_guard lock(mutex);
    status = std::move(of_work);
    is_done = true;
    is_over.notify_all();
  });
  DiskWatch watch(timeout);
  const int32_t rank = control == nullptr ? 0 : control->rank();
  {
    std::unique_lock lock(mutex);
    while (!is_over.wait_for(lock, kLookAtDisk, [&] { return is_done; })) {
      if (const absl::Status stalled = watch.Check(rank, DiskWord()); !stalled.ok()) {
        GiveUpOnDisk(stalled, control);
        break;
      }
    }
  }
  thread.join();
  return status;
}

absl::Status WriteInTime(std::chrono::milliseconds timeout, int64_t bytes, ControlPlane* control,
                         const std::function<absl::Status()>& write) {
  constexpr int64_t kSlowestDiskBytesPerMs = 1000;
  if (timeout.count() == 0) return write();
  return DoInTime(timeout + std::chrono::milliseconds(bytes / kSlowestDiskBytesPerMs), control,
                  write);
}

}  // namespace isomer
