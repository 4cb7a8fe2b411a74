// One kernel with buffers of its own, ready to be run and timed.
#ifndef ISOMER_RUNTIME_PROFILER_KERNEL_TIMER_H_
#define ISOMER_RUNTIME_PROFILER_KERNEL_TIMER_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime/device/backend.h"
#include "runtime/device/caches.h"
#include "runtime/profiler/device_clock.h"
#include "runtime/profiler/profile_calls.h"

namespace isomer {

class KernelTimer {
 public:
  // Made-up numbers: some kernels (max, relu) branch on them, so they are random like activations;
  // indices are spread over what they index.
  // `clock`: of a device that has one of its own, or null. REQUIRES: `memory`, of the backend,
  // holds BytesOf(kernel); all outlive this.
  static absl::StatusOr<std::unique_ptr<KernelTimer>> Make(const ProfiledKernel& kernel,
                                                           Backend* backend, char* memory,
                                                           DeviceClock* clock);
  // Bytes of the buffers that a timer of this kernel has.
  static absl::StatusOr<int64_t> BytesOf(const ProfiledKernel& kernel);

  // Brings its buffers to where tasks of it find them in a step (ProfiledKernel::found).
  absl::Status SetCaches(CacheSweeper* sweeper);
  // The time of one run. Time during which another process had the core is not the kernel's: the
  // less of the time that passed and that this thread computed counts. By the device's clock, if it
  // has one.
  absl::StatusOr<double> RunUs();
  int64_t workspace_bytes() const { return kernel_->workspace_bytes(); }
  // Aligned to 64 bytes; timers that run one after the other may share one. To be set before runs.
  void set_workspace(void* workspace) { workspace_ = workspace; }
  // The most that making and running it took from the heap; 0 where that is not counted.
  int64_t library_bytes() const { return library_bytes_; }

 private:
  struct Region {
    char* data;
    int64_t bytes;
    bool is_written;
    CacheLevel found;
  };
  KernelTimer() = default;

  std::vector<Region> regions_;
  std::unique_ptr<Kernel> kernel_;
  DeviceClock* clock_ = nullptr;
  void* workspace_ = nullptr;
  std::vector<const void*> reads_;
  std::vector<void*> writes_;
  int64_t library_bytes_ = 0;
};

// What this thread has computed so far.
double ThreadUs();

}  // namespace isomer

#endif  // ISOMER_RUNTIME_PROFILER_KERNEL_TIMER_H_
