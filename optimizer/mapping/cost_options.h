// What costs of calls and of moves are asked for.
#ifndef ISOMER_OPTIMIZER_MAPPING_COST_OPTIONS_H_
#define ISOMER_OPTIMIZER_MAPPING_COST_OPTIONS_H_

#include <cstdint>

#include "pcg/ir/tensor_type.h"
#include "pcg/ir/weight_update.h"
#include "pcg/support/digest.h"

namespace isomer {

struct CostOptions {
  bool training = true;
  // What is float32 in the graph is taken to be computed, stored and sent in this type, but for
  // gradients of weights, as `low_precision_sums` of UpdateOptions says (pcg/ir/precision.h).
  DataType precision = DataType::kFloat32;
  OptimizerKind optimizer = OptimizerKind::kSgd;
  // The choices are for so many devices (0: all) from this one on.
  int64_t num_devices = 0;
  int64_t first_device = 0;
  // Micro-batches: the batch dim of every call that has one is split so many times more, in time
  // (MachineView::moments). Times of nodes and edges are of the whole step.
  int64_t moments = 1;
  // How the copies of weights are kept equal.
  UpdateMethod update_method = UpdateMethod::kAllReduce;
  bool low_precision_sums = false;
  DataType SumsIn() const { return low_precision_sums ? precision : DataType::kFloat32; }
  // In buckets, so that an update has no launch of its own (UpdateOptions::bucket_bytes).
  bool updates_together = true;
  int max_axes = 3;
  // Choices of a call on all the devices, about; half as many on both halves together.
  int max_choices = 192;
  // Choices on halves of the machine, so that branches can run at the same time.
  bool halves = true;
  // How much of a gradient synchronisation counts: the rest is hidden behind the backward pass.
  double sync_weight = 1;
  // What a byte of device memory costs; raised by the search until a plan fits.
  double us_per_byte = 0;
};
void AddToDigest(Digest* digest, const CostOptions& options);

}  // namespace isomer

#endif  // ISOMER_OPTIMIZER_MAPPING_COST_OPTIONS_H_
