#ifndef ISOMER_RUNTIME_JOB_H_
#define ISOMER_RUNTIME_JOB_H_

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "pcg/graph.h"
#include "pcg/schedule/schedule.h"
#include "runtime/backend.h"
#include "runtime/communicator.h"
#include "runtime/executor.h"
#include "runtime/host_values.h"

namespace isomer {

// Runs a schedule on virtual devices: one thread each, with the in-process communicator.
//
//   ISOMER_ASSIGN_OR_RETURN(auto job, Job::Start(graph, schedule, &backend));
//   ISOMER_RETURN_IF_ERROR(job->SetParameters(weights));
//   ISOMER_RETURN_IF_ERROR(job->TrainStep(inputs, 0.1));
//   ISOMER_ASSIGN_OR_RETURN(Array<double> loss, job->Output("loss"));
//
// An error of any device is final: all threads stop, and every later call returns that error.
class Job {
 public:
  // REQUIRES: `graph` and `backend` outlive the job.
  static absl::StatusOr<std::unique_ptr<Job>> Start(
      const Graph& graph, Schedule schedule, Backend* backend,
      std::chrono::milliseconds timeout = std::chrono::seconds(60));
  ~Job();
  Job(const Job&) = delete;
  Job& operator=(const Job&) = delete;

  const Schedule& schedule() const { return schedule_; }
  const MemoryPlan& memory() const { return memory_; }

  absl::Status SetParameters(const HostValues& weights);
  // Forward, backward, update.
  absl::Status TrainStep(const HostValues& inputs, double learning_rate);
  // Forward alone.
  absl::Status Evaluate(const HostValues& inputs);

  // Of the last step: the meaning of an output.
  absl::StatusOr<Array<double>> Output(absl::string_view name);
  // The original parameters, and the gradients of the last step (REQUIRES: keep_gradients; zero for
  // parameters on which the loss does not depend).
  absl::StatusOr<HostValues> Parameters();
  absl::StatusOr<HostValues> Gradients();

  void StartTrace();
  // A Chrome trace (chrome://tracing, Perfetto) of the steps since StartTrace.
  std::string ChromeTrace() const;

 private:
  class Worker;

  Job(const Graph& graph, Schedule schedule);
  // Runs `work` on every device's thread; the first error, if any.
  absl::Status OnAllDevices(const std::function<absl::Status(int32_t device)>& work);
  absl::Status SetTensors(const std::vector<Schedule::HostTensor>& tensors,
                          const HostValues& leaves);
  Array<double> Collect(TensorRef tensor, const std::vector<BufferId>& shards);
  absl::StatusOr<HostValues> CollectLeaves(bool gradients);

  const Graph& graph_;
  const Schedule schedule_;
  const MemoryPlan memory_;
  std::vector<std::unique_ptr<Communicator>> communicators_;
  std::vector<std::unique_ptr<Executor>> executors_;
  std::vector<std::unique_ptr<Worker>> workers_;  // stopped before what they use goes
  absl::Status status_;
};

}  // namespace isomer

#endif  // ISOMER_RUNTIME_JOB_H_
