#ifndef ISOMER_RUNTIME_EXECUTION_EXECUTOR_H_
#define ISOMER_RUNTIME_EXECUTION_EXECUTOR_H_

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "pcg/ir/graph.h"
#include "pcg/ir/plan.h"
#include "pcg/schedule/memory/memory.h"
#include "pcg/schedule/memory/packing.h"
#include "pcg/schedule/program/program.h"
#include "pcg/schedule/schedule.h"
#include "runtime/device/backend.h"
#include "runtime/device/communicator.h"
#include "runtime/device/device_queues.h"
#include "runtime/device/memory_watch.h"
#include "runtime/device/update.h"
#include "runtime/execution/expert_counter.h"
#include "runtime/execution/queue_runner.h"
#include "runtime/execution/running_statistics.h"
#include "runtime/execution/weight_average.h"

namespace isomer {

// When a task ran, in microseconds of the steady clock, and on which queue.
struct TaskRun {
  int32_t task, queue;
  double start_us, end_us;
};

// Elements of what an update changes that are not updated as the optimizer's formula alone has it,
// but with a factor that was found before (whole_updates.h).
struct UpdatePiece {
  int64_t place = 0, count = 0;
  double factor =
      1;  // of the learning rate; of a direction, of its step alone and not of its decay
  bool is_direction = false;  // The second state is what is subtracted.
};

// Runs the program of one device (pcg/schedule/program/program.h): the tasks of the schedule that
// it takes part in. Whatever the execution, results are the same to the bit. REQUIRES: all
// arguments of the constructor outlive it.
class Executor {
 public:
  Executor(const Graph& graph, const Schedule& schedule, int32_t device, Backend* backend,
           Communicator* communicator, const Execution& execution = {});
  // Waits for what the device was given.
  ~Executor();
  // Ends an asynchronous communicator, and what was recorded with it: a library may wait for that.
  void Abort(const absl::Status& status);

  int32_t device() const { return device_; }

  // The schedule is of a model that trains, whose calls are evaluated as evaluation_calls.h has it,
  // with Model::statistics, which outlive this. To be called before MakeKernels.
  void set_evaluates_otherwise(absl::Span<const BatchStatistics> statistics) {
    evaluates_otherwise_ = true;
    entries_ = statistics;
  }
  // Null: no batch norm has any.
  RunningStatistics* statistics() { return statistics_.get(); }

  // Looks at the loads of experts, which the model assumes to be no more uneven than that; 0: it
  // assumes nothing. To be called before MakeKernels. REQUIRES: the device shares the host's
  // memory.
  void WatchExperts(double imbalance) {
    experts_ = std::make_unique<ExpertCounter>(graph_, schedule_, imbalance);
  }
  // Null: nobody looks.
  const ExpertCounter* experts() const { return experts_.get(); }

  // Makes the kernels. To be called first, and like all that follows from the thread that entered
  // the device.
  absl::Status MakeKernels();
  // By task of the schedule: the bytes that the kernels need beside their buffers, where they do.
  std::map<int32_t, int64_t> Workspaces() const;
  // Allocates the arena and clears the optimizer's state. REQUIRES: `memory` is of the schedule
  // with these workspaces, and outlives this.
  absl::Status Prepare(const MemoryPlan& memory);

  // Runs the tasks of the phases [first, last]. The host has set the parameters, and the inputs.
  // Those up to `then` are to be run next, so what they read is kept. The error names the device
  // and the node.
  absl::Status Run(Phase first, Phase last, Phase then);
  absl::Status Run(Phase first, Phase last) { return Run(first, last, last); }
  // The forward tasks from `step` on, of those between two flushes. Of a schedule that trains, as
  // they are evaluated (evaluation_calls.h).
  absl::Status RunForward(int32_t step);

  // Updates since the parameters were loaded, of which Adam's correction depends.
  int64_t updates() const { return steps_; }
  void set_updates(int64_t updates) { steps_ = updates; }
  // By which formulas the schedule's optimizer updates: `decaying`, which outlives this, of these
  // tensors with weight decay. Else with its own settings.
  void set_optimizer(const OptimizerSettings& settings, const std::set<TensorRef>* decaying) {
    rule_.settings = settings;
    decaying_ = decaying;
  }
  const UpdateRule& rule() const { return rule_; }
  // Of the averages that the schedule keeps.
  void set_average(const AverageOptions& average) { average_ = average; }
  // What is another in each run, from the next one on.
  struct StepSettings {
    std::vector<double> learning_rates = {};  // by step of the schedule; empty: nothing is updated
    double loss_factor = 1;  // The gradient of the loss is that many times what the schedule says.
    double gradient_factor = 1;  // what all gradients are multiplied with first, in updates
  };
  void set_step(StepSettings step) { step_ = std::move(step); }
  // Whether all gradients with which this device is about to update are finite: behind the backward
  // pass, with the update to follow.
  absl::StatusOr<bool> GradientsAreFinite();
  // What updates read of gradients is added to sums in float32 of this device's own, or begins
  // them; and the sums become what updates read.
  absl::Status AddToGradientSums(bool begins);
  absl::Status TakeGradientSums();
  // Averages become the weights with which all devices compute, and the weights averages; a second
  // time they are what they were, to the bit. All devices do it together.
  absl::Status SwapAverages();

  // What an update of segment `segment` of task `task` works on, of a device that shares the host's
  // memory; in between runs.
  struct Operands {
    Gradient gradient;
    const float* weights = nullptr;
    std::vector<float*> states = {};
    bool decays = false;
    std::vector<float> copied = {};  // of weights that lie apart
    // From element `place` on.
    Operands From(int64_t place) const;
  };
  Operands OperandsOf(int32_t task, int32_t segment);
  // The factors of the update to come, at another rate than it will have.
  UpdateFactors FactorsAt(double learning_rate) const;
  // For the updates to come; in order and all of it. Without, all is one piece with factor 1.
  void SetPieces(int32_t task, int32_t segment, std::vector<UpdatePiece> pieces) {
    pieces_[{task, segment}] = std::move(pieces);
  }

  // Of what buffers of this device hold: DeviceOperations::SumOfSquares, for each.
  absl::StatusOr<std::vector<double>> SumsOfSquares(absl::Span<const BufferId> ids);

  // What the host does with a buffer of this device: memory of its size that is written, and then
  // what the buffer holds, or that holds what it does.
  using HostWriter = std::function<absl::Status(void* contents)>;
  using HostReader = std::function<absl::Status(const void* contents)>;
  absl::Status Set(BufferId id, const HostWriter& write);
  absl::Status Get(BufferId id, const HostReader& read);

  int64_t arena_bytes() const { return memory_->arena_bytes[device_]; }
  // The most memory that the device has needed so far: the arena, and what libraries of kernels and
  // messages took beside it for as long as they ran (runtime/device/allocation_count.h).
  int64_t peak_bytes() const;
  // What the kernels themselves keep: code, descriptions. Kernels of a library may share some.
  int64_t kernel_bytes() const;

  // Times of the tasks of the runs since tracing was switched on, queue by queue. `holds`: a device
  // with queues begins a run when it has all of it, which a run of few tasks may be.
  void set_trace(bool trace, bool holds = false) {
    trace_ = trace;
    holds_ = holds;
  }
  std::vector<TaskRun> times() const;

 private:
  // Of the tasks of the phases [first, last] those of the steps from `from_step` on.
  absl::Status RunTasks(Phase first, Phase last, int32_t from_step, Phase then);
  // A run on the queues of a device, by what it runs.
  using RunKey = std::tuple<Phase, Phase, int32_t>;
  absl::Status RunOnDeviceQueues(const RunKey& key, const QueueWork& work);
  // Of the commands of a run that was traced, all of which was given at that time.
  absl::Status ReadTimes(double given_us);
  // Runs `work` in this thread, and notes what it keeps of the heap and what it takes in between.
  absl::Status Measured(const std::function<absl::Status()>& work);
  absl::Status RunCommand(int32_t place);
  // The error, with the device and the node of the task.
  absl::Status Named(const absl::Status& status, int32_t t) const;
  absl::Status RunTask(int32_t t);
  absl::Status RunKernel(int32_t t);
  absl::Status MakeEvaluation(int32_t t);
  // What a queue of communications works with.
  struct Messages {
    Communicator* communicator = nullptr;
    // Packed pieces of the communication that runs. They and `sends` are read by others until it is
    // over, failed or not.
    char *packed = nullptr, *received = nullptr;
    std::vector<Send> sends = {};
    std::vector<Receive> receives = {};
  };
  absl::Status RunCollective(int32_t t, Messages* messages);
  absl::Status RunRooted(const Task& task, Communicator* communicator);
  absl::Status RunLocalMoves(const Task& task);
  absl::Status RunTransfers(int32_t t, Messages* messages);
  absl::Status RunUpdate(int32_t t);
  absl::Status BeginAverages();
  // How many numbers of states in low precision are widened at a time: what stays in a core's
  // cache, or fills a GPU.
  int64_t MostWideStates() const { return operations_.shares_host_memory() ? 1 << 14 : 1 << 22; }
  absl::Status UpdateLowStates(const UpdateRule& rule, const UpdateFactors& factors,
                               const Gradient& gradient, int64_t count, const float* weights,
                               float* updated, absl::Span<float* const> states,
                               const LowWeights& low);
  absl::Status SwapOrAverage(const Task& task, int64_t count, const float* weights, float* updated,
                             float* averages, const LowWeights& low);
  // Of the update tasks of this device.
  std::set<BufferId> GradientsOfUpdates() const;

  // Those of this device, which lie side by side.
  absl::Span<const BufferId> Mine(absl::Span<const BufferId> ids) const;
  absl::Status Pack(absl::Span<const BufferId> ids, char* to);
  absl::Status Unpack(const char* from, absl::Span<const BufferId> ids);
  absl::Status PackPieces(const Task& task, char* to);
  absl::Status UnpackPieces(const Task& task, const char* from);
  // Sets `packed` and `received` to the task's scratch space.
  PackBytes UseScratch(int32_t t, Messages* messages);

  // The memory of a buffer of this device, where the device has it.
  void* data(BufferId id) {
    const bool on_host = IsOnHost(schedule_, buffer(id));
    return (on_host ? host_arena_ : arena_).get() + memory_->offsets[id];
  }
  const Buffer& buffer(BufferId id) const { return schedule_.buffers[id]; }
  int64_t elements(BufferId id) const { return buffer(id).box.Volume(); }
  // As it lies: both ends of a move have one layout.
  Box box(BufferId id) const { return buffer(id).in_memory(); }

  const Graph& graph_;
  const Schedule& schedule_;
  const MemoryPlan* memory_ = nullptr;
  const int32_t device_;
  Backend& backend_;
  DeviceOperations& operations_;
  Communicator& communicator_;

  Backend::Memory arena_;
  Backend::Memory host_arena_;  // of what lies in the host's memory (IsOnHost)
  std::vector<Command> program_;
  const Execution execution_;
  std::unique_ptr<DeviceQueues> device_queues_;  // null: the device does at once what it is given
  std::unique_ptr<QueueRunner> queues_;
  std::unique_ptr<MemoryWatch> watch_;  // adversarial
  // A kernel with what it runs on.
  struct Launch {
    std::unique_ptr<Kernel> kernel;
    std::vector<const void*> reads = {};
    std::vector<void*> writes = {};
    void* workspace = nullptr;
  };
  std::map<int32_t, Launch> launches_;     // by task
  std::map<int32_t, Launch> evaluations_;  // of tasks that are evaluated otherwise
  absl::Span<const BatchStatistics> entries_;
  std::unique_ptr<RunningStatistics> statistics_;
  std::unique_ptr<ExpertCounter> experts_;
  bool evaluates_otherwise_ = false;
  bool evaluates_ = false;                      // now
  std::array<Messages, kMostQueues> messages_;  // by queue
  // By thread of the device: what it keeps of the heap, and took beside it.
  struct HeapUse {
    int64_t kept = 0, passing = 0;
  };
  std::mutex mutex_;  // guards heap_
  std::map<std::thread::id, HeapUse> heap_;
  // What is another in each run, though its commands are the same: by step of the schedule. In
  // memory of the host that the device reaches, and, where that is not its own, as the device's.
  struct StepValues {
    double loss_factor = 1;
    UpdateFactors update;
  };
  int64_t step_values_bytes() const {
    return static_cast<int64_t>(sizeof(StepValues)) * schedule_.num_steps();
  }
  Backend::Memory step_values_, step_values_on_device_;
  const StepValues& step_values(int32_t step) const {
    const auto* values = reinterpret_cast<const StepValues*>(
        step_values_on_device_ == nullptr ? step_values_.get() : step_values_on_device_.get());
    return values[step];
  }
  // On the queues of a device: runs that were done once, and their recordings.
  // Of an asynchronous communicator: the tasks of communications that began and ended last, from 1,
  // as the device writes them to the host's memory; and what numbers of other runs are below.
  Backend::Memory progress_;
  int64_t tasks_before_ = 0;
  absl::Status MarkProgress(int32_t word, int32_t task);
  absl::Status Poll();
  // What the device was given until it is over.
  absl::Status GiveAndFinish(const RunKey& key, const QueueWork& work);
  std::map<RunKey, std::optional<int32_t>> runs_;
  bool records_ = false;
  UpdateRule rule_;
  AverageOptions average_;
  // By task and segment.
  std::map<std::pair<int32_t, int32_t>, std::vector<UpdatePiece>> pieces_;
  // What becomes of averages in updates that run now.
  enum class Averaging { kFollows, kBegins, kSwaps };
  Averaging averaging_ = Averaging::kFollows;
  Backend::Memory wide_states_;  // of states in low precision, those at hand; null: there are none
  Backend::Memory gradient_sums_;  // null: there are none
  int64_t gradient_sums_bytes_ = 0;
  const std::set<TensorRef>* decaying_ = nullptr;
  StepSettings step_;
  int64_t steps_ = 0;  // that ended since the parameters were loaded
  bool trace_ = false, holds_ = false;
  std::vector<int32_t> traced_;                          // places of the run
  std::array<std::vector<TaskRun>, kMostQueues> times_;  // by queue
};

}  // namespace isomer

#endif  // ISOMER_RUNTIME_EXECUTION_EXECUTOR_H_
