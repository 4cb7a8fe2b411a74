// What every device runs: the tasks of a schedule as flat commands on queues, with the bytes
// that each touches and the commands that it waits for.
//
// A queue runs its commands one after the other, in their order; the queues of a device run
// beside each other. What orders two commands of two queues is a wait, and nothing else: not
// their order in the schedule, by which the memory plan gives the bytes of one buffer to the next.
// So waits follow from bytes, whoever's buffers they hold: a command comes after all that came
// before it in the schedule and wrote what it reads, or touched what it writes. Of these waits all
// are left out that follow from others: a queue that has waited for a command knows that all
// before it on its queue, and all that they waited for, are done (vector clocks; Fidge, 1988;
// Mattern, 1989).
//
//   queue          commands
//   compute        compute, compute_gradient, fill, accumulate, convert, local, update
//   communication  all_reduce .. send_receive: on each of its devices one command. They are in
//                  the schedule's order everywhere, so that every device meets them in one order.
//   weights        those of them that sum gradients of weights, or gather or spread weights
//                  (Task::of_weights): large, and wanted late. In one queue with the others, what
//                  is computed next would wait for megabytes of gradients before the few bytes
//                  that it needs, such as the sums of a batch norm over all devices' samples.
//   forward, backward  messages of micro-batches, from stage to stage of a pipeline, there and
//                  back. A stage is given micro-batches as they come: in one queue with its own
//                  collectives, all of these would wait for a message that is not sent yet.
//   offload, fetch  copies to the host's memory and from it, beside each other: the bus between
//                  device and host has two directions
//
// What the host does (load, feed, unload) comes before all commands or after them, and a step
// begins when the last is over. Calls that are views (views.h) are no commands: who reads what
// they write waits for who wrote what they read, for it has the same bytes.
#ifndef ISOMER_PCG_SCHEDULE_PROGRAM_PROGRAM_H_
#define ISOMER_PCG_SCHEDULE_PROGRAM_PROGRAM_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "pcg/ir/graph.h"
#include "pcg/schedule/memory/byte_uses.h"
#include "pcg/schedule/memory/memory.h"
#include "pcg/schedule/schedule.h"
#include "pcg/support/small_list.h"

namespace isomer {

// What the host does: no command.
inline bool IsOfHost(TaskKind kind) {
  return kind == TaskKind::kLoad || kind == TaskKind::kFeed || kind == TaskKind::kUnload;
}

// [begin, end) of the arena of a device, or of its arena in the host's memory (IsOnHost).
struct ByteRange {
  int64_t begin = 0, end = 0;
  bool on_host = false;
  friend auto operator<=>(const ByteRange&, const ByteRange&) = default;
};
inline bool Overlap(const ByteRange& a, const ByteRange& b) {
  return a.on_host == b.on_host && a.begin < b.end && b.begin < a.end;
}

// The bytes that a task touches on a device.
struct Accesses {
  SmallList<ByteRange, 3> reads, writes;  // what is written may be read before
};
// Of a task of the schedule on its devices, in their order: buffers; rows of buffers that are
// summed or sent as one, with what lies between them (memory.h); scratch space. None for views.
std::vector<Accesses> AccessesOf(const Schedule& schedule, const MemoryPlan& memory, int32_t task);

// The same, device by device: what a communication touches is found for all of its devices at once.
class AccessTable {
 public:
  // Both must outlive this.
  AccessTable(const Schedule& schedule, const MemoryPlan& memory)
      : schedule_(schedule), memory_(memory), of_communications_(schedule.tasks.size()) {}
  // REQUIRES: the device is one of the task's.
  Accesses Of(int32_t task, int32_t device);

 private:
  const Schedule& schedule_;
  const MemoryPlan& memory_;
  std::vector<std::vector<Accesses>> of_communications_;  // empty: not known
};

struct Command {
  int32_t task;       // in Schedule::tasks
  int32_t queue = 0;  // of the device
  // Others wait for it.
  bool signals = false;
  // Commands of other queues, by place in the device's list; ascending.
  SmallList<int32_t, 1> waits = {};
  Accesses bytes = {};
};

inline constexpr int32_t kComputeQueue = 0, kCommunicationQueue = 1, kWeightsQueue = 2,
                         kForwardQueue = 3, kBackwardQueue = 4, kOffloadQueue = 5, kFetchQueue = 6;
// "compute", "communication", "weights", "forward", "backward", "offload", "fetch".
const char* QueueName(int32_t queue);
// Of a task that is not the host's, if devices have so many queues.
int32_t QueueOf(const Task& task, int32_t num_queues);

struct Program {
  // 1: one queue for all, and no waits. kMostQueues: as above.
  int32_t num_queues = kMostQueues;
  // Per device, in the order of the schedule.
  std::vector<std::vector<Command>> devices;

  // A line for each command, by device.
  std::string ToString(const Graph& graph, const Schedule& schedule) const;
};

// REQUIRES: 1 or kMostQueues queues; CheckMemory(schedule, memory) is ok.
Program CompileProgram(const Schedule& schedule, const MemoryPlan& memory, int32_t num_queues);
// Of one device, with what is known of its tasks from other devices.
std::vector<Command> CompileProgramOf(const Schedule& schedule, AccessTable* accesses,
                                      int32_t num_queues, int32_t device);
inline std::vector<Command> CompileProgramOf(const Schedule& schedule, const MemoryPlan& memory,
                                             int32_t num_queues, int32_t device) {
  AccessTable accesses(schedule, memory);
  return CompileProgramOf(schedule, &accesses, num_queues, device);
}

// Ok if the program, whatever its queues do side by side, does what the schedule's lists do one
// task after the other:
//   - the commands of a device are its tasks but for the host's and views, each once, and say
//     which bytes these touch;
//   - of two commands of a device that touch a byte, one of them writing it, the one that the
//     schedule has first is over before the other begins;
//   - all end: no two devices meet their communications in unlike orders, or on unlike queues, and
//     no waits go in a circle.
// Trusts nobody who made the program: ranges are compared pair by pair, wherever two commands
// may run at one time. The error names the device and both tasks.
absl::Status CheckProgram(const Schedule& schedule, const MemoryPlan& memory,
                          const Program& program);

}  // namespace isomer

#endif  // ISOMER_PCG_SCHEDULE_PROGRAM_PROGRAM_H_
