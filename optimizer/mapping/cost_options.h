// Options under which calls and resharding are priced.
#ifndef ISOMER_OPTIMIZER_MAPPING_COST_OPTIONS_H_
#define ISOMER_OPTIMIZER_MAPPING_COST_OPTIONS_H_

#include <cstdint>

#include "pcg/ir/fp8.h"
#include "pcg/ir/tensor_type.h"
#include "pcg/ir/weight_update.h"
#include "pcg/support/digest.h"

namespace isomer {

struct CostOptions {
  bool training = true;
  // float32 tensors are computed, stored and sent in this type, but for gradients of weights, which
  // are sent in `gradient_sums` (pcg/ir/precision.h).
  DataType precision = DataType::kFloat32;
  // Of products with weights (pcg/ir/fp8.h). Those that a plan keeps in bfloat16 are priced as the
  // others, until whole plans are predicted.
  Fp8Scaling fp8_scaling = Fp8Scaling::kNone;
  OptimizerKind optimizer = OptimizerKind::kSgd;
  // Choices are for `num_devices` devices (0: all) from `first_device` on.
  int64_t num_devices = 0;
  int64_t first_device = 0;
  // Micro-batches per step: the batch dim of every call that has one is split by this, in time
  // (MachineView::moments). Node and edge times are per step.
  int64_t moments = 1;
  // How weight replicas are synchronised.
  UpdateMethod update_method = UpdateMethod::kAllReduce;
  DataType gradient_sums = DataType::kFloat32;
  DataType state_precision = DataType::kFloat32;
  // UpdateOptions::clips and averages.
  bool clips = false, averages = false;
  // In buckets, so that an update has no kernel launch of its own (UpdateOptions::bucket_bytes).
  bool updates_together = true;
  int max_axes = 3;
  // Approximate choices per call on all devices; half as many on the two halves together.
  int max_choices = 192;
  // Also choices on halves of the machine, for concurrent branches.
  bool halves = true;
  // Fraction of gradient synchronisation that counts; the rest overlaps with the backward pass.
  double sync_weight = 1;
  // Price of device memory in us per byte; the search raises it until a plan fits.
  double us_per_byte = 0;
};
void AddToDigest(Digest* digest, const CostOptions& options);

}  // namespace isomer

#endif  // ISOMER_OPTIMIZER_MAPPING_COST_OPTIONS_H_
