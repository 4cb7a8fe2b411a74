// One kernel with buffers of its own, ready to be run and timed.
#ifndef ISOMER_RUNTIME_KERNEL_TIMER_H_
#define ISOMER_RUNTIME_KERNEL_TIMER_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime/backend.h"
#include "runtime/profile_calls.h"

namespace isomer {

class KernelTimer {
 public:
  // Made-up numbers: some kernels (max, relu) branch on them, so they are random like activations;
  // indices are spread over what they index.
  // REQUIRES: `memory` holds BytesOf(kernel), aligned to 64 bytes, and outlives this.
  static absl::StatusOr<std::unique_ptr<KernelTimer>> Make(const ProfiledKernel& kernel,
                                                           Backend* backend, char* memory);
  // Bytes of the buffers that a timer of this kernel has.
  static absl::StatusOr<int64_t> BytesOf(const ProfiledKernel& kernel);

  // Touches what tasks before it in a step have touched not long ago: the operands that are warm
  // (ProfiledKernel), and the memory of its results, which are put where another buffer has just
  // died (MemoryPlan).
  void Warm();
  // The time of one run. Time during which another process had the core is not the kernel's: the
  // less of the time that passed and that this thread computed counts.
  absl::StatusOr<double> RunUs();
  // The most that making and running it took beside its buffers; 0 where that is not counted.
  int64_t workspace_bytes() const { return workspace_bytes_; }

 private:
  struct Region {
    char* data;
    int64_t bytes;
    bool is_written;
  };
  KernelTimer() = default;

  std::vector<Region> warm_;
  std::unique_ptr<Kernel> kernel_;
  Backend::Memory workspace_{nullptr, [](char*) {}};
  std::vector<const void*> reads_;
  std::vector<void*> writes_;
  int64_t workspace_bytes_ = 0;
};

}  // namespace isomer

#endif  // ISOMER_RUNTIME_KERNEL_TIMER_H_
