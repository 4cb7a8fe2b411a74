#include "optimizer/mapping/cost_options.h"

namespace isomer {

void AddToDigest(Digest* digest, const CostOptions& options) {
  const auto& [training, precision, fp8_scaling, optimizer, num_devices, first_device, moments,
               update_method, gradient_sums, state_precision, clips, averages, updates_together,
               max_axes, max_choices, halves, sync_weight, us_per_byte] = options;
  digest->Add(training, precision, fp8_scaling, optimizer, num_devices, first_device, moments,
              update_method, gradient_sums, state_precision, clips, averages, updates_together,
              max_axes, max_choices, halves, sync_weight, us_per_byte);
}

}  // namespace isomer
