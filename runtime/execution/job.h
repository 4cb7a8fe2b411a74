#ifndef ISOMER_RUNTIME_EXECUTION_JOB_H_
#define ISOMER_RUNTIME_EXECUTION_JOB_H_

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "pcg/ir/graph.h"
#include "pcg/ir/plan.h"
#include "pcg/schedule/schedule.h"
#include "runtime/device/backend.h"
#include "runtime/device/communicator.h"
#include "runtime/execution/arrangement.h"
#include "runtime/execution/executor.h"
#include "runtime/execution/host_values.h"
#include "runtime/execution/leaf_values.h"
#include "runtime/execution/loss_scale.h"
#include "runtime/execution/queue_runner.h"
#include "runtime/execution/state_parts.h"
#include "runtime/execution/weight_average.h"
#include "runtime/execution/whole_updates.h"
#include "runtime/execution/worker.h"

namespace isomer {

struct JobOptions {
  // How long a thread waits for another before the job ends.
  std::chrono::milliseconds timeout = std::chrono::seconds(60);
  // Each device keeps to a core of its own, if there are as many (runtime/device/pinning.h).
  bool pin = false;
  Execution execution = {};
  // Training in float16: by what the loss is multiplied at first; 0: by the schedule's seed,
  // always. With `finds_loss_scale` it changes (runtime/execution/loss_scale.h). REQUIRES:
  // CanSkipUpdates.
  double loss_scale = 0;
  bool finds_loss_scale = false;
  // Training: of the schedule's optimizer, and which weights its decay is for (weight_decay.h).
  // Nothing: the optimizer's own.
  std::optional<OptimizerSettings> optimizer = {};
  std::optional<std::string> no_decay = {};
  // Gradients whose global norm, the root of the sum of the squares of all of their elements, is
  // larger are scaled down to it before the update (Pascanu et al., "On the Difficulty of Training
  // Recurrent Neural Networks", 2013). 0: none are. Or the norm is found alone. REQUIRES, of both:
  // CanSkipUpdates.
  double clip_norm = 0;
  bool finds_gradient_norm = false;
  bool needs_gradient_norm() const { return clip_norm > 0 || finds_gradient_norm; }
  // Names of the weights that Muon is for: matrices. It updates the others as Adam does.
  std::set<std::string> matrices = {};
  // Of the averages that the schedule keeps (UpdateOptions::averages).
  AverageOptions average = {};
  // Of the model: what batch norms of a plan that trains are evaluated with.
  std::vector<BatchStatistics> statistics = {};
  // Of a mixture: the load of its experts that the model assumes (pcg/ir/expert_room.h), beyond
  // which a run ends; 0: none. And whether loads are counted. Both are for cores.
  double expert_imbalance = 0;
  bool counts_expert_loads = false;
  // A schedule that does not train is that of a model that does: it is evaluated like one.
  bool evaluates = false;
  // Null: all devices are threads of this process. Otherwise this process is the device of this
  // rank, and others like it are the rest; `communicator` is for devices whose memory is the host's
  // alone. Both outlive the job.
  ControlPlane* control = nullptr;
  Communicator* communicator = nullptr;
};

// Whether all of a step's gradients are there before the first update.
bool CanSkipUpdates(const Schedule& schedule);
// The last phase that no task of a phase before it follows on any device, and before which nothing
// is updated: the update, or, where some weights are updated in the backward pass, that. None: in
// pipelines that update early, or are not drained after each step.
std::optional<Phase> PhaseBeforeUpdates(const Schedule& schedule);

// Runs a schedule on virtual devices: one thread each, with the in-process communicator, or one
// process each. Processes make the same calls with the same arguments, and all get the results.
//
//   ISOMER_ASSIGN_OR_RETURN(auto job, Job::Start(graph, schedule, &backend));
//   ISOMER_RETURN_IF_ERROR(job->SetParameters(weights));
//   ISOMER_RETURN_IF_ERROR(job->TrainStep(inputs, 0.1));
//   ISOMER_ASSIGN_OR_RETURN(Array<double> loss, job->Output("loss"));
//
// An error of any device is final: all stop, and every later call returns that error.
class Job {
 public:
  // REQUIRES: `graph` and `backend` outlive the job.
  static absl::StatusOr<std::unique_ptr<Job>> Start(const Graph& graph, Schedule schedule,
                                                    Backend* backend,
                                                    const JobOptions& options = {});
  ~Job();
  Job(const Job&) = delete;
  Job& operator=(const Job&) = delete;

  const Graph& graph() const { return graph_; }
  const Schedule& schedule() const { return schedule_; }
  const JobOptions& options() const { return options_; }
  const MemoryPlan& memory() const { return memory_; }

  // Sets the parameters and clears the optimizer's state. Each device reads its own shards.
  absl::Status SetParameters(const LeafValues& leaves);
  absl::Status SetParameters(const HostValues& weights);
  // What training makes, where the devices of this process have it, each number once: calls
  // take(part, what its buffer holds, in float32), each device in its thread. What training does
  // not change and devices have in lower precision than the model is left out.
  absl::Status ReadState(
      const std::function<absl::Status(const StatePart&, const void* contents)>& take);
  // The same of one part that is on a device of this process.
  absl::Status ReadPart(const StatePart& part, const Executor::HostReader& read);
  // What of trained leaves no device has: since SetParameters.
  absl::Span<const UnheldPart> unheld() const { return unheld_; }
  // Whether other threads may read parts while a step runs, until it updates them.
  bool CanReadBesideSteps() const { return held_phase_.has_value(); }
  // Before the next step updates anything, each device calls `wait` in its thread. REQUIRES:
  // CanReadBesideSteps().
  void HoldNextUpdate(std::function<absl::Status()> wait) { before_update_ = std::move(wait); }
  bool IsHere(int32_t device) const { return executors_[device] != nullptr; }
  // Goes on from there: `weights` as SetParameters has it, `states` of the leaves by slot (from 1
  // on; StatePart), after so many updates.
  absl::Status RestoreState(const LeafValues& weights, absl::Span<const LeafValues* const> states,
                            int64_t updates, const DynamicLossScale& scale);
  // So far.
  int64_t updates() const;
  // Where the elements of a parameter lie in its leaves. Error: it is more than an arrangement,
  // which no trained one is.
  absl::StatusOr<Arrangement> ArrangementOf(const Schedule::HostTensor& parameter) const;
  // Forward, backward, update, of each step of the schedule: one, or as many as there are between
  // two flushes (pcg/schedule/order/weight_versions.h). REQUIRES: inputs, and learning rates,
  // of so many.
  absl::Status TrainSteps(absl::Span<const HostValues> inputs,
                          absl::Span<const double> learning_rates);
  // All with one rate.
  absl::Status TrainSteps(absl::Span<const HostValues> inputs, double learning_rate) {
    return TrainSteps(inputs, std::vector<double>(inputs.size(), learning_rate));
  }
  absl::Status TrainStep(const HostValues& inputs, double learning_rate) {
    return TrainSteps({&inputs, 1}, learning_rate);
  }
  // One step in parts (gradient accumulation): AddGradients takes a batch forward and backward and
  // adds its gradients to those before, in float32; UpdateWithMean updates with their mean, which
  // is what is clipped, and is skipped if any was not finite. REQUIRES: CanSkipUpdates.
  absl::Status AddGradients(const HostValues& inputs);
  absl::Status UpdateWithMean(double learning_rate);
  // Puts the averages in the place of the weights that Evaluate and Parameters() are of, and the
  // weights in theirs; a second time they are what they were. REQUIRES: the schedule keeps
  // averages.
  absl::Status SwapAverages();
  // By what the loss is multiplied now, and how many steps were skipped, as gradients were not
  // finite.
  const DynamicLossScale& loss_scale() const { return loss_scale_; }
  // The global norm of the gradients of the last step, before any clipping; the same bits on all
  // ranks, whatever the execution. Not finite of a step that was skipped. REQUIRES:
  // JobOptions::needs_gradient_norm.
  double gradient_norm() const { return gradient_norm_; }
  // Forward alone, with the newest weights; the schedule's last step. Of a plan that trains as its
  // model is evaluated: Dropout lets all pass, batch norms take their running statistics
  // (evaluation_calls.h).
  absl::Status Evaluate(const HostValues& inputs);
  // The running means and variances of batch norms, by name, on all ranks.
  absl::StatusOr<std::map<std::string, std::vector<float>>> Statistics();

  // How many tokens experts got in the steps so far, by call, on all ranks. REQUIRES:
  // JobOptions::counts_expert_loads.
  absl::StatusOr<std::vector<ExpertLoad>> ExpertLoadsSoFar();

  int32_t num_steps() const { return schedule_.num_steps(); }
  // The meaning of an output in step `step` of the schedule; else in the last.
  absl::StatusOr<Array<double>> Output(absl::string_view name, int32_t step);
  absl::StatusOr<Array<double>> Output(absl::string_view name) {
    return Output(name, num_steps() - 1);
  }
  // The original parameters, but for those that training does not change and devices have in lower
  // precision than the model; and the gradients of a step, likewise (REQUIRES: keep_gradients; zero
  // for parameters on which the loss does not depend).
  absl::StatusOr<HostValues> Parameters() { return CollectLeaves(false, num_steps() - 1); }
  absl::StatusOr<HostValues> Gradients(int32_t step) { return CollectLeaves(true, step); }
  // Parameters(), as a file has them, on `receiver` alone, which takes them tensor by tensor; empty
  // on the others. To be called on all.
  absl::StatusOr<std::map<std::string, std::vector<float>>> ParametersOn(int32_t receiver);
  absl::StatusOr<HostValues> Gradients() { return Gradients(num_steps() - 1); }

  // How long the devices took for the last step, of several on average: from where all had come to
  // its start until the last had done its last task. What the host does before (feeding) and after
  // is not counted.
  absl::StatusOr<double> StepUs();
  // By device, in bytes: see Executor.
  struct MemoryUse {
    int64_t arena = 0, peak = 0, kernels = 0;
  };
  absl::StatusOr<std::vector<MemoryUse>> UsedMemory();

  void StartTrace();
  // A Chrome trace (chrome://tracing, Perfetto) of the steps since StartTrace, a line for each
  // queue of each device. Processes on different computers have different clocks.
  absl::StatusOr<std::string> ChromeTrace();

 private:
  Job(const Graph& graph, Schedule schedule, const JobOptions& options);
  // What the devices of this process take of it.
  absl::Status CheckMemoryOfHost(const DeviceOperations& operations) const;
  // Of devices whose memory is not the host's.
  absl::Status ConnectDevices(Backend* backend);
  // Starts the work on all devices at one time, and takes the time that it takes.
  // `goes_on`: the time is added to that of the work before.
  absl::Status OnAllTogether(const std::function<absl::Status(Executor* executor)>& work,
                             bool goes_on = false);
  // Who reads parts beside steps, until it is done.
  absl::Status WaitForReaders();
  // Whether something is done between the backward pass and the update.
  bool LooksAtGradients() const;
  // Of a step, on all devices.
  Executor::StepSettings SettingsOf(absl::Span<const double> learning_rates) const;
  // What is behind the backward pass, on `executor`'s device. `before_update`: null, or what is
  // waited for.
  absl::Status UpdateOn(Executor* executor, const Executor::StepSettings& settings,
                        const std::function<absl::Status()>& before_update);
  // What all devices found out about the gradients of the step.
  void NoteGradients();
  // Runs `work` for every device of this process, in its thread; the first error, if any.
  absl::Status OnAllDevices(const std::function<absl::Status(int32_t device)>& work);
  absl::Status EndWith(const absl::Status& status);
  absl::Status SetInputs(const HostValues& leaves, int32_t step);
  absl::Status SetOptimizer();
  // What batch norms evaluate with, where nothing is trained yet, or again.
  absl::Status SetStatistics(const LeafValues& leaves);
  // Behind the backward pass, on `executor`'s device: whether the update is to follow. Sets the
  // norm, where it is needed, in `norms_`.
  absl::StatusOr<bool> InspectGradients(Executor* executor);
  absl::Status CheckOptions(const DeviceOperations& operations, absl::string_view backend) const;
  // Of all devices, of whose gradients each has the sums of squares of its own.
  absl::StatusOr<double> GradientNorm(Executor* executor);
  // Of a parameter, where its devices have it: in one step, or in all. Calls f(buffer, its data)
  // for those of `device`, or of all that are here (-1).
  absl::Status ForEachSet(const Schedule::HostTensor& parameter, int32_t device,
                          const std::function<absl::Status(const Buffer&, void* data)>& f);
  absl::Status RunOn(int32_t device, const std::function<absl::Status(int32_t device)>& work);
  absl::StatusOr<Array<double>> Collect(TensorRef tensor, std::vector<BufferId> shards);
  // `receiver`, of what follows: the rank that gets it; kAll: every one does.
  static constexpr int32_t kAll = -1;
  bool Receives(int32_t receiver) const {
    return receiver == kAll || options_.control == nullptr || options_.control->rank() == receiver;
  }
  // The buffers, parts of the tensor or of its gradient, added up.
  absl::StatusOr<Array<double>> SumOf(TensorRef tensor, absl::Span<const BufferId> buffers,
                                      int32_t receiver);
  // The contents of the buffers of other processes; empty for those that are here.
  absl::StatusOr<std::vector<std::vector<char>>> Fetch(absl::Span<const BufferId> buffers,
                                                       int32_t receiver);
  // Calls f for what of each leaf a tensor of the schedule has, its gradient or itself: leaves are
  // the sums of these. `rounded` gets the leaves that there are in lower precision alone.
  absl::Status ForEachPartOfLeaf(
      bool gradients, int32_t step, int32_t receiver,
      const std::function<void(const std::string& leaf, const Array<double>& part)>& f,
      std::set<std::string>* rounded);
  // Of all devices, what `bytes_of` says of those here.
  absl::StatusOr<std::vector<std::string>> FromAllDevices(
      const std::function<std::string(int32_t device)>& bytes_of);
  std::vector<BufferId> InStep(std::vector<BufferId> ids, int32_t step) const;
  absl::StatusOr<HostValues> CollectLeaves(bool gradients, int32_t step);
  absl::Status SetUnheld(const LeafValues& leaves);
  // Calls f(leaf, element, value) for weights that no device has.
  void ForEachUnheldWeight(
      absl::FunctionRef<void(const std::string& leaf, int64_t element, float value)> f) const;

  const Graph& graph_;
  Schedule schedule_;  // with the workspaces of kernels
  MemoryPlan memory_;
  const JobOptions options_;
  std::vector<int32_t> all_devices_;
  std::vector<std::unique_ptr<HostCommunicator>> threads_;  // empty where devices are processes
  // By device, of those that do not share its memory; null for those of other processes.
  std::vector<std::unique_ptr<Communicator>> on_devices_;
  // By device; null for those of other processes.
  std::vector<Communicator*> communicators_;
  std::vector<ControlPlane*> controls_;
  std::vector<std::unique_ptr<Executor>> executors_;
  // By device; empty where devices are processes, whose own thread does the work. Stopped before
  // what they use goes.
  std::vector<std::unique_ptr<Worker>> workers_;
  std::vector<double> device_us_;  // of the last steps
  std::vector<char> finite_;       // by device: gradients of the last step
  // Gradients of which each element is in one; by device: their norm in the last step.
  std::vector<BufferId> gradients_once_;
  std::vector<double> norms_;
  double gradient_norm_ = 0;
  std::set<TensorRef> decaying_;
  std::vector<UnheldPart> unheld_;
  std::optional<Phase> held_phase_;              // before which a step can be held
  std::function<absl::Status()> before_update_;  // of the next step; null: nobody waits
  DynamicLossScale loss_scale_;
  double scale_of_step_ = 1;     // by which the gradients are too large that there are now
  int64_t gradients_added_ = 0;  // batches whose gradients are summed and not yet updated with
  std::unique_ptr<WholeUpdates> whole_updates_;  // of optimizers that need more than elements
  absl::Status status_;
};

}  // namespace isomer

#endif  // ISOMER_RUNTIME_EXECUTION_JOB_H_
