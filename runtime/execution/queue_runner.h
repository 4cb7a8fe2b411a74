// How a device runs the queues of its program (pcg/schedule/program/program.h).
#ifndef ISOMER_RUNTIME_EXECUTION_QUEUE_RUNNER_H_
#define ISOMER_RUNTIME_EXECUTION_QUEUE_RUNNER_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "pcg/schedule/memory/byte_uses.h"
#include "pcg/schedule/program/program.h"
#include "runtime/device/device_queues.h"

namespace isomer {

enum class ExecutionKind {
  kInline,  // one queue, one command after the other
  // Communications overlap computation: cores have a thread for each queue; GPUs have streams, and
  // do a step that they have done before as one graph, if they do what belongs together alone.
  kThreaded,
  kAdversarial,  // queues in an order drawn from a seed, over memory that is watched
};
struct Execution {
  ExecutionKind kind = ExecutionKind::kInline;
  uint64_t seed = 1;  // adversarial
  int32_t num_queues() const { return kind == ExecutionKind::kInline ? 1 : kMostQueues; }
  // Of each device.
  int32_t num_threads() const { return kind == ExecutionKind::kThreaded ? num_queues() : 1; }
};
// "inline", "threaded", "adversarial". The error names what there is.
absl::StatusOr<ExecutionKind> ParseExecutionKind(absl::string_view name);
const char* ExecutionKindName(ExecutionKind kind);

// What is done with the commands of a program, by their place in it.
struct QueueWork {
  // Commands that are left out count as done.
  std::function<bool(int32_t place)> selects;
  std::function<absl::Status(int32_t place)> run;
  // Around all that a thread does.
  std::function<absl::Status(const std::function<absl::Status()>& all)> on_thread;
  // After an error: wakes a queue that waits for other devices.
  std::function<void(const absl::Status&)> abort;
  // Threaded: when what computes begins to wait for others, or has nothing left to do, and when it
  // goes on.
  std::function<void(bool computes)> computes = nullptr;
  // Adversarial: before and after each command. `over`: what is known to be over.
  std::function<absl::Status(int32_t place, const QueueClock& over)> before = nullptr;
  std::function<void(int32_t place)> after = nullptr;
};

class QueueRunner {
 public:
  virtual ~QueueRunner() = default;
  // Until all commands are over; the first error.
  virtual absl::Status Run(const QueueWork& work) = 0;
};

// REQUIRES: inline or threaded; `program`, of that many queues, outlives it; to be made in the
// device's thread, whose core its other threads then keep to, too.
std::unique_ptr<QueueRunner> MakeQueueRunner(const std::vector<Command>& program,
                                             ExecutionKind kind);
// Gives the commands to the queues of the device in the program's order, each behind the marks of
// what it waits for, and does not wait for their end. REQUIRES: both outlive it.
std::unique_ptr<QueueRunner> MakeDeviceQueueRunner(const std::vector<Command>& program,
                                                   DeviceQueues* queues);
// The mark that stands for where a run began, and those that others may make after it.
inline int32_t BeginMark(const std::vector<Command>& program) {
  return static_cast<int32_t>(program.size());
}
inline int32_t FirstFreeMark(const std::vector<Command>& program) {
  return BeginMark(program) + 1 + kMostQueues;
}

// Of a task, ascending.
using DevicesOfTask = std::function<absl::Span<const int32_t>(int32_t task)>;
// `programs`: of all devices, whose runners have the same seed and make the same runs. What they
// are made of outlives it.
std::unique_ptr<QueueRunner> MakeAdversarialRunner(const Program& programs,
                                                   const DevicesOfTask& devices_of, uint64_t seed,
                                                   int32_t device);

}  // namespace isomer

#endif  // ISOMER_RUNTIME_EXECUTION_QUEUE_RUNNER_H_
