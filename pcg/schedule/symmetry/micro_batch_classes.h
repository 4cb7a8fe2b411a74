// Micro-batches that do the same are lowered once. Internal to pcg/schedule.
//
// Of a schedule of n micro-batches, made by the lowering, all but the first and the last have the
// same tasks: the first has the shares of gradients that the others add to, after the last what is
// of none (sums, synchronisation) goes on. So a schedule of four, whose tensors have the sizes that
// they have among n, becomes that of n by repeating the tasks and buffers of the third behind
// themselves. What is of no micro-batch and reads or writes something of each does so for the
// repeated ones, too.
//
// That the lowering treats micro-batches alike is a fact that is tested, as with device_classes.h.
#ifndef ISOMER_PCG_SCHEDULE_SYMMETRY_MICRO_BATCH_CLASSES_H_
#define ISOMER_PCG_SCHEDULE_SYMMETRY_MICRO_BATCH_CLASSES_H_

#include <cstdint>

#include "absl/types/span.h"
#include "pcg/ir/graph.h"
#include "pcg/ir/machine_view.h"
#include "pcg/schedule/schedule.h"

namespace isomer {

// How many micro-batches stand for `moments`: the least divisor that is enough; `moments` if none.
int64_t RepresentedMoments(int64_t moments);

// Makes `schedule`, of fewer micro-batches and without deps, order and programs, one of
// `num_moments`. `graph` and `views` are those of all. False, and nothing is changed, if its
// micro-batches are not alike. Schedule::shards is not kept.
bool RepeatMicroBatches(const Graph& graph, absl::Span<const MachineView> views,
                        int32_t num_moments, Schedule* schedule);

}  // namespace isomer

#endif  // ISOMER_PCG_SCHEDULE_SYMMETRY_MICRO_BATCH_CLASSES_H_
