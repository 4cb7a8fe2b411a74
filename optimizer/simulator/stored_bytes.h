// A lower bound on the memory of a plan's weights, without a schedule.
#ifndef ISOMER_OPTIMIZER_SIMULATOR_STORED_BYTES_H_
#define ISOMER_OPTIMIZER_SIMULATOR_STORED_BYTES_H_

#include <cstdint>

#include "optimizer/cost/cost.h"
#include "pcg/ir/graph.h"
#include "pcg/ir/plan.h"
#include "pcg/ir/tensor_type.h"
#include "pcg/ir/weight_update.h"

namespace isomer {

// Bytes of weights, optimizer states and, of several micro-batches, sums of gradients that some
// device stores throughout training `plan` with the update method `update`: a lower bound on its
// peak. `machine`: where devices have unlike memories, less what the device has beyond the
// smallest, as in Simulation::peak_bytes; null: they are alike.
int64_t LeastStoredBytes(const Plan& plan, const UpdateOptions& update,
                         const Machine* machine = nullptr);

// The same of all devices of `machine` together, of any plan of `graph`; states may be on hosts
// that have memory for them.
enum class Keeps { kWeights, kStates, kSums };  // in inference; training; of several micro-batches
int64_t LeastStoredOnAll(const Graph& graph, DataType precision, const UpdateOptions& update,
                         Keeps keeps, const Machine& machine);

// What the peak of a predicted plan becomes with another update, if what a step holds besides what
// is stored stays. Off by what synchronisation holds for a while: buckets, and gathered weights.
int64_t EstimatedPeakWith(const UpdateOptions& update, const Plan& plan,
                          const Machine* machine = nullptr);

}  // namespace isomer

#endif  // ISOMER_OPTIMIZER_SIMULATOR_STORED_BYTES_H_
