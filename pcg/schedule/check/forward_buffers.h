// Which buffers stand for which. Internal to the checks of pcg/schedule.
#ifndef ISOMER_PCG_SCHEDULE_CHECK_FORWARD_BUFFERS_H_
#define ISOMER_PCG_SCHEDULE_CHECK_FORWARD_BUFFERS_H_

#include <vector>

#include "absl/status/statusor.h"
#include "pcg/ir/graph.h"
#include "pcg/schedule/schedule.h"

namespace isomer {

// Whether it is for a value of the forward pass.
bool HoldsValue(const Buffer& buffer);

// By buffer: of the gradient buffers and of those that the backward pass fills again, the buffer of
// the forward pass with the same box and partials of the same shard, on the same device; kNoBuffer
// for the others. Error: there is none, or a buffer is of no shard of the graph.
// REQUIRES: tasks name buffers that there are.
absl::StatusOr<std::vector<BufferId>> FindForwardBuffers(const Graph& graph,
                                                         const Schedule& schedule);

}  // namespace isomer

#endif  // ISOMER_PCG_SCHEDULE_CHECK_FORWARD_BUFFERS_H_
