// What tasks use beside their buffers while they run.
//
// How what a device sends and receives is packed: pieces that lie apart in buffers travel side by
// side. The runtime packs so, and its memory is counted so. Buckets that are summed or broadcast as
// a whole lie as they travel (memory.h).
#ifndef ISOMER_PCG_SCHEDULE_MEMORY_PACKING_H_
#define ISOMER_PCG_SCHEDULE_MEMORY_PACKING_H_

#include <cstdint>
#include <vector>

#include "pcg/schedule/schedule.h"

namespace isomer {

// Whether transfer `i` of a send_receive is sent from where it lies in its buffer, of which it is
// one line; and received to where it goes, which is all of a buffer that receives nothing else.
bool IsSentAsItLies(const Schedule& schedule, const Task& task, size_t i);
// `arrivals`: ArrivalsOf(task).
bool IsReceivedAsItLies(const Schedule& schedule, const Task& task, size_t i,
                        absl::Span<const int32_t> arrivals);
// Per write of a send_receive, how many transfers go there.
std::vector<int32_t> ArrivalsOf(const Task& task);

// Bytes that a communication needs on a device beside its buffers: 0 where a buffer is sent, or
// received into, as it lies.
struct PackBytes {
  int64_t send = 0, receive = 0;
  int64_t total() const { return send + receive; }
};
// Of every device of the task that is there; none for tasks of one device.
std::vector<PackBytes> PackBytesOf(const Schedule& schedule, const Task& task);

// The most that one device sends, and that one receives, packed.
PackBytes MostPacked(const Schedule& schedule, const Task& task);

// Per device of the task that is there: bytes that it uses while it runs, beside its buffers:
// packed pieces, or the workspace of its kernel.
std::vector<int64_t> ScratchBytesOf(const Schedule& schedule, const Task& task);

// Whether the buffers `pieces` hold, one after the other, what lies one after the other in a buffer
// that holds `whole`, the box as it lies (Buffer::in_memory). With `gaps`, pieces between them may
// be missing.
bool LieSideBySide(const Schedule& schedule, const Box& whole, const BufferId* pieces,
                   int64_t count, bool gaps = false);

}  // namespace isomer

#endif  // ISOMER_PCG_SCHEDULE_MEMORY_PACKING_H_
