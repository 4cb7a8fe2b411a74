#include "runtime/job.h"

#include <condition_variable>
#include <exception>
#include <mutex>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "pcg/support/json.h"
#include "pcg/support/status_macros.h"
#include "runtime/moves.h"
#include "runtime/thread_communicator.h"

namespace isomer {

// A thread that runs one piece of work at a time.
class Job::Worker {
 public:
  Worker() : thread_([this] { Loop(); }) {}
  ~Worker() {
    {
      std::lock_guard lock(mutex_);
      stopping_ = true;
    }
    changed_.notify_all();
    thread_.join();
  }

  void Begin(std::function<absl::Status()> work) {
    {
      std::lock_guard lock(mutex_);
      work_ = std::move(work);
    }
    changed_.notify_all();
  }

  absl::Status Wait() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return work_ == nullptr; });
    return status_;
  }

 private:
  void Loop() {
    std::unique_lock lock(mutex_);
    while (true) {
      changed_.wait(lock, [this] { return stopping_ || work_ != nullptr; });
      if (work_ == nullptr) return;
      const std::function<absl::Status()> work = work_;
      lock.unlock();
      absl::Status status = work();
      lock.lock();
      status_ = std::move(status);
      work_ = nullptr;
      changed_.notify_all();
    }
  }

  std::mutex mutex_;  // guards what follows but the thread
  std::condition_variable changed_;
  std::function<absl::Status()> work_;  // null: idle
  absl::Status status_;
  bool stopping_ = false;
  std::thread thread_;
};

Job::Job(const Graph& graph, Schedule schedule)
    : graph_(graph), schedule_(std::move(schedule)), memory_(PlanMemory(schedule_)) {}

Job::~Job() { workers_.clear(); }

absl::StatusOr<std::unique_ptr<Job>> Job::Start(const Graph& graph, Schedule schedule,
                                                Backend* backend,
                                                std::chrono::milliseconds timeout) {
  std::unique_ptr<Job> job(new Job(graph, std::move(schedule)));
  const int32_t num_devices = static_cast<int32_t>(job->schedule_.programs.size());
  job->communicators_ = MakeThreadCommunicators(num_devices, timeout);
  for (int32_t d = 0; d < num_devices; ++d) {
    job->executors_.push_back(std::make_unique<Executor>(graph, job->schedule_, job->memory_, d,
                                                         backend, job->communicators_[d].get()));
    job->workers_.push_back(std::make_unique<Worker>());
  }
  ISOMER_RETURN_IF_ERROR(job->OnAllDevices(
      [&](int32_t device) { return job->executors_[device]->Prepare(num_devices); }));
  return job;
}

absl::Status Job::OnAllDevices(const std::function<absl::Status(int32_t device)>& work) {
  ISOMER_RETURN_IF_ERROR(status_);
  for (size_t d = 0; d < workers_.size(); ++d) {
    const int32_t device = static_cast<int32_t>(d);
    workers_[d]->Begin([this, device, &work] {
      absl::Status status;
      try {
        status = work(device);
      } catch (const std::exception& e) {
        status = absl::InternalError(absl::StrCat("device ", device, ": ", e.what()));
      }
      // Wakes those that wait for this device.
      if (!status.ok()) communicators_[device]->Abort(status);
      return status;
    });
  }
  for (const auto& worker : workers_) {
    absl::Status status = worker->Wait();
    if (status_.ok()) status_ = std::move(status);
  }
  return status_;
}

absl::Status Job::SetTensors(const std::vector<Schedule::HostTensor>& tensors,
                             const HostValues& leaves) {
  for (const Schedule::HostTensor& tensor : tensors) {
    ISOMER_ASSIGN_OR_RETURN(const Array<double> value, ArrangeHostTensor(graph_, tensor, leaves));
    for (BufferId id : schedule_.shards.at(tensor.tensor)) {
      const Buffer& buffer = schedule_.buffers[id];
      CopyToBuffer(value, buffer.box, buffer.dtype, executors_[buffer.device]->data(id));
    }
  }
  return absl::OkStatus();
}

absl::Status Job::SetParameters(const HostValues& weights) {
  ISOMER_RETURN_IF_ERROR(status_);
  return SetTensors(schedule_.parameters, weights);
}

absl::Status Job::TrainStep(const HostValues& inputs, double learning_rate) {
  ISOMER_RETURN_IF_ERROR(status_);
  ISOMER_RETURN_IF_ERROR(SetTensors(schedule_.inputs, inputs));
  return OnAllDevices([&](int32_t device) {
    return executors_[device]->Run(Phase::kForward, Phase::kUpdate, learning_rate);
  });
}

absl::Status Job::Evaluate(const HostValues& inputs) {
  ISOMER_RETURN_IF_ERROR(status_);
  ISOMER_RETURN_IF_ERROR(SetTensors(schedule_.inputs, inputs));
  return OnAllDevices(
      [&](int32_t device) { return executors_[device]->Run(Phase::kForward, Phase::kForward, 0); });
}

// The meaning: one copy of each shard, partials summed.
Array<double> Job::Collect(TensorRef tensor, const std::vector<BufferId>& shards) {
  const TensorType& type = graph_.type(tensor);
  Array<double> array(type.Sizes());
  for (size_t s = 0; s < shards.size(); ++s) {
    if (CoordinatesOfShard(type, static_cast<int64_t>(s)).copy != 0) continue;
    const BufferId id = shards[s];
    if (id == kNoBuffer) continue;
    const Buffer& buffer = schedule_.buffers[id];
    AddFromBuffer(buffer.box, buffer.dtype, executors_[buffer.device]->data(id), &array);
  }
  return array;
}

absl::StatusOr<Array<double>> Job::Output(absl::string_view name) {
  ISOMER_RETURN_IF_ERROR(status_);
  for (const Graph::NamedOutput& output : graph_.outputs()) {
    if (output.name == name) return Collect(output.tensor, schedule_.shards.at(output.tensor));
  }
  return absl::NotFoundError(absl::StrCat("there is no output '", name, "'"));
}

absl::StatusOr<HostValues> Job::CollectLeaves(bool gradients) {
  ISOMER_RETURN_IF_ERROR(status_);
  HostValues leaves;
  for (int id = 0; id < graph_.num_nodes(); ++id) {
    const Node& node = graph_.node(id);
    if (node.op.kind() == OpKind::kWeight) {
      leaves.emplace(node.name, Array<double>(node.outputs[0].Sizes()));
    }
  }
  for (const Schedule::HostTensor& tensor : schedule_.parameters) {
    if (!tensor.trainable) continue;
    const Array<double> value =
        Collect(tensor.tensor, gradients ? tensor.gradients : schedule_.shards.at(tensor.tensor));
    ISOMER_ASSIGN_OR_RETURN(const HostValues parts, UnarrangeHostTensor(graph_, tensor, value));
    const double scale = gradients ? 1 / schedule_.options.seed : 1;
    for (const auto& [name, part] : parts) {
      // Several arrangements of one weight hold parts of it, or shares of its gradient.
      Array<double>& leaf = leaves.at(name);
      for (int64_t i = 0; i < leaf.size(); ++i) leaf.data[i] += scale * part.data[i];
    }
  }
  return leaves;
}

absl::StatusOr<HostValues> Job::Parameters() { return CollectLeaves(false); }
absl::StatusOr<HostValues> Job::Gradients() { return CollectLeaves(true); }

void Job::StartTrace() {
  const auto now = std::chrono::steady_clock::now();
  for (const auto& executor : executors_) executor->set_trace(true, now);
}

std::string Job::ChromeTrace() const {
  Json trace;
  Json& events = trace["traceEvents"] = Json::EmptyArray();
  for (size_t d = 0; d < executors_.size(); ++d) {
    for (const TaskTime& time : executors_[d]->times()) {
      const Task& task = schedule_.tasks[time.task];
      Json event;
      event["name"] = absl::StrCat(TaskKindName(task.kind), " ", graph_.Label(task.node));
      event["cat"] = PhaseName(task.phase);
      event["ph"] = "X";
      event["ts"] = time.start_us;
      event["dur"] = time.end_us - time.start_us;
      event["pid"] = 0;
      event["tid"] = static_cast<int64_t>(d);
      event["args"]["task"] = time.task;
      event["args"]["bytes"] = task.bytes;
      event["args"]["flops"] = task.flops;
      events.Append(std::move(event));
    }
  }
  return trace.Print();
}

}  // namespace isomer
