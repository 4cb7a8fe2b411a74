// The kernels of a backend, with what rounding may do to them done on purpose.
#ifndef ISOMER_RUNTIME_CHECKING_ROUNDING_BACKEND_H_
#define ISOMER_RUNTIME_CHECKING_ROUNDING_BACKEND_H_

#include <cstdint>
#include <memory>

#include "runtime/checking/rounding.h"
#include "runtime/device/backend.h"

namespace isomer {

// Adds the noise of rounding_noise.h. For jobs on one device.
class RoundingBackend : public Backend {
 public:
  // REQUIRES: `inner` outlives the backend, and the backend its kernels.
  RoundingBackend(Backend* inner, const Rounding& rounding, uint64_t seed)
      : inner_(*inner), rounding_(rounding), state_(seed) {}

  // Kernels are those of the other backend, to the bit, until this is called; from then on they
  // multiply a by `amplitude`. 0: nothing is drawn, and what low precision stores is rounded.
  void StartNoise(double amplitude) {
    noisy_ = true;
    amplitude_ = amplitude;
  }

  absl::string_view name() const override { return inner_.name(); }
  void EnterDevice(int32_t device, int32_t num_devices) override {
    inner_.EnterDevice(device, num_devices);
  }
  absl::StatusOr<Memory> Allocate(int64_t bytes) override { return inner_.Allocate(bytes); }
  absl::StatusOr<std::unique_ptr<Kernel>> MakeKernel(const KernelCall& call) override;

 private:
  class NoisyKernel;

  Backend& inner_;
  const Rounding rounding_;
  bool noisy_ = false;
  double amplitude_ = 0;
  uint64_t state_;  // of the random numbers; one device draws them
};

}  // namespace isomer

#endif  // ISOMER_RUNTIME_CHECKING_ROUNDING_BACKEND_H_
