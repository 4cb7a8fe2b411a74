// How long buffers live where the queues of a device run beside each other (program.h).
//
// In the order of the schedule a buffer that a communication sends is dead when the next task of
// its device begins. But the two may be on two queues: who takes its bytes waits until they are
// sent, and that may be for as long as a kernel takes. It need not, where bytes are to spare: a
// communication is over for sure when the first computation begins that waits for it because of
// what it computes. Until then what it uses lives, but not beyond the kMostAhead-th communication
// of its queue behind it: gradients are released as they are reduced and messages as they are sent,
// though no computation waits for these before the end of the step. What it receives into, or
// packs, lives from the time it may begin: behind the last computation that it waits for, but not
// before the kMostAhead-th communication of its queue before it, so that weights are not all
// gathered at the start of the step.
#ifndef ISOMER_PCG_SCHEDULE_PROGRAM_QUEUE_LIVES_H_
#define ISOMER_PCG_SCHEDULE_PROGRAM_QUEUE_LIVES_H_

#include <cstddef>
#include <utility>
#include <vector>

#include "pcg/schedule/memory/memory.h"
#include "pcg/schedule/schedule.h"

namespace isomer {

// With 1, 2, 4, 8 a step of GPT in parts on 16 H100 (zoo:gpt?layers=24, --update=sharded_weights,
// bfloat16) takes 91.2, 90.8, 88.5, 88.5 ms, and the arena is the same: peaks are elsewhere.
inline constexpr size_t kMostAhead = 4;

// Of each communication of a device, in order: its task, and from and to which task what it uses
// lives; it is within.
std::vector<std::pair<int32_t, LiveRange>> CommunicationLives(const Schedule& schedule,
                                                              int32_t device);

}  // namespace isomer

#endif  // ISOMER_PCG_SCHEDULE_PROGRAM_QUEUE_LIVES_H_
