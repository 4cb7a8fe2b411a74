// Which chunks of an interleaved pipeline the tasks of a schedule belong to. Internal to
// pcg/schedule; pipeline.h says what chunks are for.
#ifndef ISOMER_PCG_SCHEDULE_ORDER_PIPELINE_CHUNKS_H_
#define ISOMER_PCG_SCHEDULE_ORDER_PIPELINE_CHUNKS_H_

#include "pcg/schedule/order/pipeline.h"
#include "pcg/schedule/schedule.h"

namespace isomer {

// Given stages with their groups, sets the rest if the pipeline is interleaved: if, counting how
// often the way to a call goes from one group of devices to another, group p of S has the calls of
// p, p + S, p + 2 S, .., as many for each; and what tasks read comes from the same count or an
// earlier one, backward from a later one. Else false, and nothing changes.
//
// Where backward passes are two halves the way may also fold: group p of S has the calls of p and
// of 2 (S - 1) - p, so that the first and the last are on the same devices. Those of the group
// where it turns are cut into two chunks behind half of their work.
bool FindChunks(const Schedule& schedule, PipelineStages* stages);

}  // namespace isomer

#endif  // ISOMER_PCG_SCHEDULE_ORDER_PIPELINE_CHUNKS_H_
