#ifndef ISOMER_RUNTIME_EXECUTOR_H_
#define ISOMER_RUNTIME_EXECUTOR_H_

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "pcg/graph.h"
#include "pcg/schedule/memory.h"
#include "pcg/schedule/packing.h"
#include "pcg/schedule/schedule.h"
#include "runtime/backend.h"
#include "runtime/communicator.h"

namespace isomer {

// When a task ran, in microseconds of the steady clock.
struct TaskTime {
  int32_t task;
  double start_us, end_us;
};

// Runs the program of one device: the tasks of the schedule that it takes part in, in order.
// REQUIRES: all arguments of the constructor outlive it.
class Executor {
 public:
  Executor(const Graph& graph, const Schedule& schedule, const MemoryPlan& memory, int32_t device,
           Backend* backend, Communicator* communicator);

  // Allocates the arena, makes the kernels and clears the optimizer's state. To be called, like
  // Run, from the device's thread.
  absl::Status Prepare(int32_t num_devices);

  // Runs the tasks of the phases [first, last]. The host has set the parameters, and the inputs.
  // The error names the device and the node.
  absl::Status Run(Phase first, Phase last, double learning_rate);
  // The forward tasks from `step` on, of those between two flushes.
  absl::Status RunForward(int32_t step);

  // The memory of a buffer of this device.
  void* data(BufferId id) {
    const bool on_host = IsOnHost(schedule_, buffer(id));
    return (on_host ? host_arena_ : arena_).get() + memory_.offsets[id];
  }

  // The most memory that the device has needed so far: the arena, and what kernels and messages
  // took beside it for as long as they ran (runtime/allocation_count.h).
  int64_t peak_bytes() const { return memory_.arena_bytes[device_] + passing_bytes_; }
  // What the kernels themselves keep: code, descriptions. Kernels of a library may share some.
  int64_t kernel_bytes() const { return kernel_bytes_; }

  // Times of the tasks of the runs since tracing was switched on.
  void set_trace(bool trace) { trace_ = trace; }
  const std::vector<TaskTime>& times() const { return times_; }

 private:
  absl::Status MakeKernels();
  absl::Status RunTasks(Phase first, Phase last, double learning_rate, int32_t from_step);
  // Runs `work`, and notes what it keeps of the heap and what it takes in between.
  template <typename Work>
  absl::Status Measured(Work work);
  absl::Status RunTask(int32_t t, double learning_rate);
  absl::Status RunKernel(int32_t t);
  absl::Status RunCollective(int32_t t);
  absl::Status RunRooted(const Task& task);
  absl::Status RunTransfers(int32_t t);
  void RunUpdate(const Task& task, double learning_rate);
  absl::Status MakeKernel(int32_t t);

  // Those of this device, which lie side by side.
  absl::Span<const BufferId> Mine(absl::Span<const BufferId> ids) const;
  void Pack(absl::Span<const BufferId> ids, char* to);
  void Unpack(const char* from, absl::Span<const BufferId> ids);
  void PackPieces(const Task& task);
  void UnpackPieces(const Task& task);
  // Sets packed_ and received_ to the task's scratch space.
  PackBytes UseScratch(int32_t t);

  const Buffer& buffer(BufferId id) const { return schedule_.buffers[id]; }
  int64_t elements(BufferId id) const { return buffer(id).box.Volume(); }

  const Graph& graph_;
  const Schedule& schedule_;
  const MemoryPlan& memory_;
  const int32_t device_;
  Backend& backend_;
  Communicator& communicator_;

  Backend::Memory arena_;
  Backend::Memory host_arena_;  // of what lies in the host's memory (IsOnHost)
  std::map<int32_t, std::unique_ptr<Kernel>> kernels_;  // by task
  // Packed pieces of the communication that runs. They and sends_ are read by others until it is
  // over, failed or not.
  char *packed_ = nullptr, *received_ = nullptr;
  std::vector<Send> sends_;
  std::vector<Receive> receives_;
  int64_t kernel_bytes_ = 0, passing_bytes_ = 0;
  int64_t steps_ = 0;  // that ended since the parameters were loaded
  bool trace_ = false;
  std::vector<TaskTime> times_;
};

}  // namespace isomer

#endif  // ISOMER_RUNTIME_EXECUTOR_H_
