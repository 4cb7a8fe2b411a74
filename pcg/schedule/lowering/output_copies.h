// Outputs of the graph that are weights, in training. Internal to pcg/schedule.
//
// An output is the value that the forward pass used. The host reads outputs when a step is over,
// and a weight is the next step's by then, as it is updated in place: so what the host reads is a
// copy, made before all that computes (Schedule::output_copies).
#ifndef ISOMER_PCG_SCHEDULE_LOWERING_OUTPUT_COPIES_H_
#define ISOMER_PCG_SCHEDULE_LOWERING_OUTPUT_COPIES_H_

#include "pcg/schedule/lowering/builder.h"

namespace isomer {

// REQUIRES: the forward pass is lowered, and nothing else.
void AddOutputCopies(ScheduleBuilder* builder);

}  // namespace isomer

#endif  // ISOMER_PCG_SCHEDULE_LOWERING_OUTPUT_COPIES_H_
