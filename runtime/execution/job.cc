#include "runtime/execution/job.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstring>
#include <exception>
#include <limits>
#include <numeric>
#include <optional>
#include <set>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "pcg/ir/state_decay.h"
#include "pcg/ir/states.h"
#include "pcg/support/chrome_trace.h"
#include "pcg/support/json.h"
#include "pcg/support/status_macros.h"
#include "runtime/communication/thread_communicator.h"
#include "runtime/device/elements.h"
#include "runtime/device/moves.h"
#include "runtime/device/pinning.h"
#include "runtime/device/us_since.h"
#include "runtime/execution/arrangement.h"
#include "runtime/execution/host_memory.h"
#include "runtime/execution/weight_decay.h"

namespace isomer {
namespace {

template <typename T>
std::string BytesOf(absl::Span<const T> values) {
  return std::string(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T));
}

template <typename T>
std::vector<T> ValuesOf(const std::string& bytes) {
  std::vector<T> values(bytes.size() / sizeof(T));
  if (!bytes.empty()) std::memcpy(values.data(), bytes.data(), bytes.size());
  return values;
}

CommunicationGroups GroupsOf(const Schedule& schedule) {
  CommunicationGroups groups;
  for (const Task& task : schedule.tasks) {
    if (task.kind == TaskKind::kSendReceive) {
      groups.has_messages = true;
    } else if (IsCommunication(task.kind)) {
      groups.of_collectives.insert(task.devices);
    }
  }
  return groups;
}

std::vector<State> StatesOfSchedule(const Graph& graph, const Schedule& schedule) {
  return schedule.options.training ? std::vector<State>() : StatesOf(graph);
}

// As torch.nn.utils.clip_grad_norm_ has it.
double ClipFactor(double most, double norm) {
  constexpr double kEpsilon = 1e-6;
  return std::min(1.0, most / (norm + kEpsilon));
}

// As the steps that ended found them.
absl::Status AdvanceStatistics(Executor* executor) {
  RunningStatistics* const statistics = executor->statistics();
  return statistics == nullptr ? absl::OkStatus() : statistics->Advance();
}

}  // namespace

bool CanSkipUpdates(const Schedule& schedule) {
  return PhaseBeforeUpdates(schedule) == Phase::kUpdate;
}

std::optional<Phase> PhaseBeforeUpdates(const Schedule& schedule) {
  if (schedule.num_steps() > 1) return std::nullopt;
  const auto parts = [&](Phase phase) {
    for (const std::vector<int32_t>& program : schedule.programs) {
      bool is_behind = false;
      for (int32_t t : program) {
        const bool is_before = schedule.tasks[t].phase < phase;
        if (is_behind && is_before) return false;
        is_behind |= !is_before;
      }
    }
    return true;
  };
  for (Phase phase : {Phase::kUpdate, Phase::kBackward}) {
    if (parts(phase)) return phase;
  }
  return std::nullopt;
}

Job::Job(const Graph& graph, Schedule schedule, const JobOptions& options)
    : graph_(graph),
      schedule_(std::move(schedule)),
      options_(options),
      all_devices_(schedule_.programs.size()),
      communicators_(all_devices_.size()),
      controls_(all_devices_.size()),
      executors_(all_devices_.size()),
      device_us_(all_devices_.size()),
      finite_(all_devices_.size(), true),
      norms_(all_devices_.size()),
      loss_scale_(options.loss_scale == 0 ? schedule_.options.seed : options.loss_scale) {
  std::iota(all_devices_.begin(), all_devices_.end(), 0);
}

Job::~Job() {
  // What devices have with each other ends on all of them at one time.
  const auto end = [this](int32_t device) {
    const bool has_own = !on_devices_.empty() && on_devices_[device] != nullptr;
    // After an error the others may never end theirs.
    if (has_own && !status_.ok() && executors_[device] != nullptr) {
      executors_[device]->Abort(status_);
    } else if (has_own && !status_.ok()) {
      on_devices_[device]->Abort(status_);
    }
    executors_[device].reset();
    if (has_own) on_devices_[device].reset();
    return absl::OkStatus();
  };
  if (options_.control != nullptr) {
    end(options_.control->rank()).IgnoreError();
    return;
  }
  for (size_t device = 0; device < workers_.size(); ++device) {
    workers_[device]->Begin([end, device] { return end(static_cast<int32_t>(device)); });
  }
  for (const auto& worker : workers_) worker->Wait().IgnoreError();
  workers_.clear();
}

absl::StatusOr<std::unique_ptr<Job>> Job::Start(const Graph& graph, Schedule schedule,
                                                Backend* backend, const JobOptions& options) {
  DeviceOperations& operations = backend->operations();
  if (options.execution.kind == ExecutionKind::kAdversarial && !operations.shares_host_memory()) {
    return absl::UnimplementedError(
        absl::StrCat("--execution=adversarial: watches memory that the host reaches, which that of "
                     "--backend=",
                     backend->name(), " is not"));
  }
  std::unique_ptr<Job> job(new Job(graph, std::move(schedule), options));
  if (operations.shares_host_memory() && options.execution.kind != ExecutionKind::kAdversarial) {
    job->held_phase_ = PhaseBeforeUpdates(job->schedule_);
  }
  ISOMER_RETURN_IF_ERROR(job->CheckOptions(operations, backend->name()));
  ISOMER_RETURN_IF_ERROR(job->SetOptimizer());
  const int32_t num_devices = static_cast<int32_t>(job->all_devices_.size());
  if (operations.shares_host_memory() &&
      (options.control == nullptr) != (options.communicator == nullptr)) {
    return absl::InvalidArgumentError("a job of processes has a control and a data plane");
  }
  if (options.control != nullptr) {
    if (options.control->num_ranks() != num_devices) {
      return absl::InvalidArgumentError(absl::StrCat("the schedule is for ", num_devices,
                                                     " devices, but there are ",
                                                     options.control->num_ranks(), " processes"));
    }
    job->communicators_[options.control->rank()] = options.communicator;
    job->controls_[options.control->rank()] = options.control;
  } else {
    job->threads_ =
        MakeThreadCommunicators(num_devices, options.timeout, options.execution.num_threads());
    for (int32_t d = 0; d < num_devices; ++d) {
      job->communicators_[d] = job->threads_[d].get();
      job->controls_[d] = job->threads_[d].get();
      job->workers_.push_back(std::make_unique<Worker>());
    }
  }
  ISOMER_RETURN_IF_ERROR(job->OnAllDevices([&](int32_t device) {
    const ControlPlane& control = *job->controls_[device];
    if (options.pin) PinThisThread(control.local_rank(), control.num_local_ranks());
    backend->EnterDevice(control.local_rank(), control.num_local_ranks());
    return absl::OkStatus();
  }));
  if (!operations.shares_host_memory()) {
    ISOMER_RETURN_IF_ERROR(job->ConnectDevices(backend));
  }
  for (int32_t d = 0; d < num_devices; ++d) {
    if (job->communicators_[d] == nullptr) continue;
    job->executors_[d] = std::make_unique<Executor>(graph, job->schedule_, d, backend,
                                                    job->communicators_[d], options.execution);
    if (options.optimizer) job->executors_[d]->set_optimizer(*options.optimizer, &job->decaying_);
    job->executors_[d]->set_average(options.average);
    if (options.expert_imbalance > 0 || options.counts_expert_loads) {
      job->executors_[d]->WatchExperts(options.expert_imbalance);
    }
    if (job->schedule_.options.training || options.evaluates) {
      job->executors_[d]->set_evaluates_otherwise(job->options_.statistics);
    }
  }
  ISOMER_RETURN_IF_ERROR(
      job->OnAllDevices([&](int32_t device) { return job->executors_[device]->MakeKernels(); }));
  struct Workspace {
    int64_t task, bytes;
  };
  ISOMER_ASSIGN_OR_RETURN(
      const std::vector<std::string> workspaces, job->FromAllDevices([&](int32_t device) {
        std::vector<Workspace> own;
        for (const auto& [task, bytes] : job->executors_[device]->Workspaces()) {
          own.push_back({task, bytes});
        }
        return BytesOf<Workspace>(own);
      }));
  for (const std::string& of_device : workspaces) {
    for (const auto& [task, bytes] : ValuesOf<Workspace>(of_device)) {
      job->schedule_.tasks[task].workspace_bytes = bytes;
    }
  }
  job->memory_ = PlanMemory(job->schedule_, options.execution.num_queues());
  ISOMER_RETURN_IF_ERROR(job->CheckMemoryOfHost(backend->operations()));
  ISOMER_RETURN_IF_ERROR(job->OnAllDevices(
      [&](int32_t device) { return job->executors_[device]->Prepare(job->memory_); }));
  return job;
}

absl::Status Job::CheckOptions(const DeviceOperations& operations,
                               absl::string_view backend) const {
  if (!operations.shares_host_memory() &&
      (options_.expert_imbalance > 0 || options_.counts_expert_loads)) {
    return absl::UnimplementedError(absl::StrCat(
        "--backend=", backend, ": ",
        options_.counts_expert_loads ? "--expert_loads" : "a plan of --expert_imbalance",
        " is for cores, which look at what experts get"));
  }
  if (!schedule_.options.training) return absl::OkStatus();
  const UpdateOptions& update = schedule_.options.update;
  const bool is_elementwise = TraitsOf(update.optimizer).needs == UpdateNeeds::kElement;
  const std::string optimizer = absl::StrCat("--optimizer=", OptimizerName(update.optimizer));
  if (!operations.shares_host_memory() && (!is_elementwise || update.averages)) {
    return absl::UnimplementedError(absl::StrCat("--backend=", backend, ": ",
                                                 is_elementwise ? "averages of weights" : optimizer,
                                                 " are for cores; there is no kernel"));
  }
  if (options_.optimizer.has_value()) {
    ISOMER_RETURN_IF_ERROR(CheckStatesDecay(update, *options_.optimizer));
  }
  const bool waits = options_.needs_gradient_norm() || !is_elementwise;
  if (!waits || CanSkipUpdates(schedule_)) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(!is_elementwise          ? optimizer
                   : options_.clip_norm > 0 ? "--clip_norm"
                                            : "--gradient_norm",
                   ": the plan updates weights before all gradients are known"));
}

absl::Status Job::SetOptimizer() {
  const OptimizerKind optimizer = schedule_.options.update.optimizer;
  if (schedule_.options.training && TraitsOf(optimizer).needs != UpdateNeeds::kElement) {
    ISOMER_ASSIGN_OR_RETURN(
        whole_updates_,
        WholeUpdates::Make(graph_, schedule_, options_.matrices,
                           options_.optimizer.value_or(TraitsOf(optimizer).settings)));
  }
  if (options_.optimizer.has_value()) {
    ISOMER_RETURN_IF_ERROR(CheckSettings(*options_.optimizer));
    if (options_.optimizer->weight_decay > 0) {
      ISOMER_ASSIGN_OR_RETURN(decaying_, DecayingTensors(graph_, schedule_, options_.no_decay));
    }
  }
  if (!options_.needs_gradient_norm()) return absl::OkStatus();
  for (const Schedule::HostTensor& parameter : schedule_.parameters) {
    if (!parameter.trainable) continue;
    const std::vector<BufferId> gradients = schedule_.DistinctGradients(parameter);
    gradients_once_.insert(gradients_once_.end(), gradients.begin(), gradients.end());
  }
  return absl::OkStatus();
}

absl::Status Job::CheckMemoryOfHost(const DeviceOperations& operations) const {
  int64_t here = 0, bytes = 0;
  for (int32_t device = 0; device < schedule_.options.num_devices; ++device) {
    if (!IsHere(device)) continue;
    ++here;
    bytes += memory_.host_bytes[device];
    if (operations.shares_host_memory()) bytes += memory_.arena_bytes[device];
  }
  return CheckFitsHost(absl::StrCat(here, here == 1 ? " device" : " devices", " of this process"),
                       bytes);
}

absl::Status Job::ConnectDevices(Backend* backend) {
  DeviceOperations& operations = backend->operations();
  if (options_.control == nullptr && operations.reaches_other_devices()) {
    on_devices_ = MakeDeviceCommunicators(threads_, &operations);
  } else {
    const CommunicationGroups groups = GroupsOf(schedule_);
    on_devices_.resize(all_devices_.size());
    ISOMER_RETURN_IF_ERROR(OnAllDevices([&](int32_t device) -> absl::Status {
      ISOMER_ASSIGN_OR_RETURN(
          on_devices_[device],
          backend->MakeCommunicator(controls_[device], groups, options_.timeout));
      if (on_devices_[device] != nullptr) return absl::OkStatus();
      return absl::UnimplementedError(absl::StrCat(
          "--backend=", backend->name(), ": there are no collectives between its devices"));
    }));
  }
  for (int32_t device : all_devices_) {
    if (on_devices_[device] != nullptr) communicators_[device] = on_devices_[device].get();
  }
  return absl::OkStatus();
}

absl::Status Job::RunOn(int32_t device, const std::function<absl::Status(int32_t device)>& work) {
  absl::Status status;
  try {
    status = work(device);
  } catch (const std::exception& e) {
    status = absl::InternalError(absl::StrCat("device ", device, ": ", e.what()));
  }
  // Wakes those that wait for this device.
  if (!status.ok()) controls_[device]->Abort(status);
  return status;
}

absl::Status Job::OnAllDevices(const std::function<absl::Status(int32_t device)>& work) {
  ISOMER_RETURN_IF_ERROR(status_);
  if (options_.control != nullptr) {
    return status_ = RunOn(options_.control->rank(), work);
  }
  for (int32_t device : all_devices_) {
    workers_[device]->Begin([this, device, &work] { return RunOn(device, work); });
  }
  for (const auto& worker : workers_) {
    absl::Status status = worker->Wait();
    if (status_.ok()) status_ = std::move(status);
  }
  return status_;
}

// What others would wait for does not come.
absl::Status Job::EndWith(const absl::Status& status) {
  if (options_.control != nullptr) options_.control->Abort(status);
  return status_ = status;
}

absl::Status Job::SetInputs(const HostValues& leaves, int32_t step) {
  const std::vector<State> states = StatesOfSchedule(graph_, schedule_);
  for (const Schedule::HostTensor& tensor : schedule_.inputs) {
    const NodeId leaf = tensor.leaves[0];
    const bool is_kept = !leaves.contains(graph_.node(leaf).name) &&
                         absl::c_any_of(states, [&](const State& s) { return s.input == leaf; });
    if (is_kept) continue;  // The step before left it there.
    ISOMER_ASSIGN_OR_RETURN(const Array<double> value, ArrangeHostTensor(graph_, tensor, leaves));
    for (BufferId of_one : schedule_.shards.at(tensor.tensor)) {
      const BufferId id = schedule_.InStep(of_one, step);
      const Buffer& buffer = schedule_.buffers[id];
      if (!IsHere(buffer.device)) continue;
      ISOMER_RETURN_IF_ERROR(executors_[buffer.device]->Set(id, [&](void* contents) {
        CopyToBuffer(value, buffer.box, buffer.dtype, contents);
        return absl::OkStatus();
      }));
    }
  }
  return absl::OkStatus();
}

absl::Status Job::ForEachSet(const Schedule::HostTensor& parameter, int32_t device,
                             const std::function<absl::Status(const Buffer&, void* data)>& f) {
  std::set<BufferId> done;
  // Both versions, if there are two.
  for (int32_t step = 0; step < std::min(num_steps(), 2); ++step) {
    for (const auto* list : {&parameter.stored, &parameter.trained}) {
      for (BufferId of_one : *list) {
        const BufferId id = schedule_.InStep(of_one, step);
        if (id == kNoBuffer || !done.insert(id).second) continue;
        const Buffer& buffer = schedule_.buffers[id];
        const bool is_asked_for = device < 0 ? IsHere(buffer.device) : buffer.device == device;
        if (!is_asked_for) continue;
        ISOMER_RETURN_IF_ERROR(executors_[buffer.device]->Set(
            id, [&](void* contents) { return f(buffer, contents); }));
      }
    }
  }
  return absl::OkStatus();
}

absl::Status Job::SetParameters(const HostValues& weights) {
  return SetParameters(HeldLeafValues(weights));
}

absl::Status Job::SetUnheld(const LeafValues& leaves) {
  ISOMER_ASSIGN_OR_RETURN(unheld_, UnheldPartsOf(graph_, schedule_));
  for (UnheldPart& part : unheld_) {
    if (part.slot != 0) continue;  // States begin with zeros.
    ISOMER_ASSIGN_OR_RETURN(const LeafValues::Leaf* leaf, leaves.Find(graph_, part.leaf));
    std::vector<double> numbers(part.values.size());
    for (const LeafLine& line : part.lines) {
      leaf->Read(line.first, line.stride, line.count, numbers.data() + line.place);
    }
    part.values.assign(numbers.begin(), numbers.end());
  }
  return absl::OkStatus();
}

void Job::ForEachUnheldWeight(
    absl::FunctionRef<void(const std::string& leaf, int64_t element, float value)> f) const {
  for (const UnheldPart& part : unheld_) {
    if (part.slot != 0) continue;
    for (const LeafLine& line : part.lines) {
      for (int64_t i = 0; i < line.count; ++i) {
        f(graph_.node(part.leaf).name, line.first + i, part.values[line.place + i]);
      }
    }
  }
}

absl::Status Job::SetParameters(const LeafValues& leaves) {
  ISOMER_RETURN_IF_ERROR(status_);
  ISOMER_RETURN_IF_ERROR(WaitForReaders());
  if (schedule_.options.training) ISOMER_RETURN_IF_ERROR(SetUnheld(leaves));
  std::vector<std::optional<Arrangement>> arrangements;
  for (const Schedule::HostTensor& parameter : schedule_.parameters) {
    arrangements.push_back(Arrangement::Of(graph_, parameter));
    if (arrangements.back().has_value()) continue;
    // More than an arrangement: made whole, one after the other.
    HostValues whole;
    for (NodeId id : parameter.leaves) {
      ISOMER_ASSIGN_OR_RETURN(const LeafValues::Leaf* leaf, leaves.Find(graph_, id));
      Array<double> values(graph_.node(id).outputs[0].Sizes());
      leaf->Read(0, 1, values.size(), values.data.data());
      whole.emplace(graph_.node(id).name, std::move(values));
    }
    ISOMER_ASSIGN_OR_RETURN(const Array<double> value, ArrangeHostTensor(graph_, parameter, whole));
    ISOMER_RETURN_IF_ERROR(ForEachSet(parameter, -1, [&](const Buffer& buffer, void* data) {
      CopyToBuffer(value, buffer.box, buffer.dtype, data);
      return absl::OkStatus();
    }));
  }
  ISOMER_RETURN_IF_ERROR(OnAllDevices([&](int32_t device) -> absl::Status {
    for (size_t p = 0; p < arrangements.size(); ++p) {
      if (!arrangements[p].has_value()) continue;
      ISOMER_RETURN_IF_ERROR(
          ForEachSet(schedule_.parameters[p], device, [&](const Buffer& buffer, void* data) {
            return arrangements[p]->ReadBox(leaves, buffer.box, buffer.dtype, data);
          }));
      for (NodeId id : schedule_.parameters[p].leaves) {
        ISOMER_ASSIGN_OR_RETURN(const LeafValues::Leaf* leaf, leaves.Find(graph_, id));
        leaf->LetGo();
      }
    }
    return absl::OkStatus();
  }));
  ISOMER_RETURN_IF_ERROR(SetStatistics(leaves));
  return OnAllDevices(
      [&](int32_t device) { return executors_[device]->Run(Phase::kLoad, Phase::kLoad); });
}

absl::Status Job::SetStatistics(const LeafValues& leaves) {
  std::map<std::string, std::vector<double>> initial;
  for (const BatchStatistics& of : options_.statistics) {
    for (const std::string* name : {&of.mean, &of.variance}) initial[*name];
  }
  for (int id = 0; id < graph_.num_nodes(); ++id) {
    const auto found = initial.find(graph_.node(id).name);
    if (!IsLeaf(graph_.node(id).op.kind()) || found == initial.end()) continue;
    ISOMER_ASSIGN_OR_RETURN(const LeafValues::Leaf* leaf, leaves.Find(graph_, NodeId{id}));
    found->second.resize(graph_.node(id).outputs[0].NumElements());
    leaf->Read(0, 1, static_cast<int64_t>(found->second.size()), found->second.data());
  }
  for (int32_t device : all_devices_) {
    if (!IsHere(device) || executors_[device]->statistics() == nullptr) continue;
    executors_[device]->statistics()->ForEach([&](int32_t entry, int64_t first,
                                                  std::vector<float>* means,
                                                  std::vector<float>* variances) {
      const BatchStatistics& of = options_.statistics[entry];
      for (auto [name, values] : {std::pair(of.mean, means), std::pair(of.variance, variances)}) {
        const std::vector<double>& whole = initial.at(name);
        if (whole.empty()) continue;
        std::copy_n(whole.begin() + first, values->size(), values->begin());
      }
    });
  }
  return absl::OkStatus();
}

absl::StatusOr<std::map<std::string, std::vector<float>>> Job::Statistics() {
  std::map<std::string, std::vector<float>> statistics;
  if (options_.statistics.empty()) return statistics;
  struct Channel {
    int32_t entry;
    int32_t number;
    float mean, variance;
  };
  ISOMER_ASSIGN_OR_RETURN(
      const std::vector<std::string> all, FromAllDevices([&](int32_t device) {
        std::vector<Channel> channels;
        RunningStatistics* const own = executors_[device]->statistics();
        if (own == nullptr) return std::string();
        own->ForEach([&](int32_t entry, int64_t first, auto* means, auto* variances) {
          for (size_t c = 0; c < means->size(); ++c) {
            channels.push_back(
                {entry, static_cast<int32_t>(first + c), (*means)[c], (*variances)[c]});
          }
        });
        return BytesOf<Channel>(channels);
      }));
  for (const std::string& bytes : all) {
    for (const Channel& channel : ValuesOf<Channel>(bytes)) {
      const BatchStatistics& of = options_.statistics[channel.entry];
      for (auto [name, value] :
           {std::pair(of.mean, channel.mean), std::pair(of.variance, channel.variance)}) {
        std::vector<float>& values = statistics[name];
        if (values.size() <= static_cast<size_t>(channel.number)) values.resize(channel.number + 1);
        values[channel.number] = value;
      }
    }
  }
  return statistics;
}

absl::StatusOr<std::vector<ExpertLoad>> Job::ExpertLoadsSoFar() {
  ISOMER_ASSIGN_OR_RETURN(const std::vector<std::string> all, FromAllDevices([&](int32_t device) {
                            return BytesOf<int64_t>(executors_[device]->experts()->Counted());
                          }));
  std::vector<std::vector<int64_t>> counted;
  for (const std::string& bytes : all) counted.push_back(ValuesOf<int64_t>(bytes));
  return MergeCounted(graph_, counted);
}

absl::StatusOr<Arrangement> Job::ArrangementOf(const Schedule::HostTensor& parameter) const {
  std::optional<Arrangement> arrangement = Arrangement::Of(graph_, parameter);
  if (arrangement.has_value()) return *std::move(arrangement);
  return absl::UnimplementedError(absl::StrCat(
      graph_.Label(parameter.tensor.node), ": what devices have of ", "'",
      NameOf(graph_, parameter), "'", " is not parts of weights, which checkpoints are of"));
}

absl::Status Job::ReadPart(const StatePart& part, const Executor::HostReader& read) {
  const Buffer& buffer = schedule_.buffers[part.buffer];
  return executors_[buffer.device]->Get(part.buffer, [&](const void* contents) -> absl::Status {
    if (buffer.dtype == DataType::kFloat32) return read(contents);
    std::vector<float> wide(buffer.box.Volume());
    ConvertElements(buffer.dtype, contents, buffer.box.Volume(), DataType::kFloat32, wide.data());
    return read(wide.data());
  });
}

absl::Status Job::ReadState(
    const std::function<absl::Status(const StatePart&, const void* contents)>& take) {
  const std::vector<StatePart> parts = StatePartsOf(schedule_, /*each_once=*/true);
  return OnAllDevices([&](int32_t device) -> absl::Status {
    for (const StatePart& part : parts) {
      if (schedule_.buffers[part.buffer].device != device) continue;
      ISOMER_RETURN_IF_ERROR(
          ReadPart(part, [&](const void* contents) { return take(part, contents); }));
    }
    return absl::OkStatus();
  });
}

absl::Status Job::RestoreState(const LeafValues& weights,
                               absl::Span<const LeafValues* const> states, int64_t updates,
                               const DynamicLossScale& scale) {
  ISOMER_RETURN_IF_ERROR(SetParameters(weights));
  const std::vector<StatePart> parts = StatePartsOf(schedule_, /*each_once=*/false);
  loss_scale_ = scale;
  return OnAllDevices([&](int32_t device) -> absl::Status {
    executors_[device]->set_updates(updates);
    std::optional<Arrangement> arrangement;
    int32_t of_parameter = -1;  // Parts of one stand together.
    for (const StatePart& part : parts) {
      const Buffer& buffer = schedule_.buffers[part.buffer];
      // Averages that nobody has are those of the weights.
      const bool is_there = part.slot <= static_cast<int32_t>(states.size());
      if (buffer.device != device || !is_there) continue;
      const Schedule::HostTensor& parameter = schedule_.parameters[part.parameter];
      if (of_parameter != part.parameter) {
        ISOMER_ASSIGN_OR_RETURN(arrangement, ArrangementOf(parameter));
        of_parameter = part.parameter;
      }
      const LeafValues& values = *states[part.slot - 1];
      ISOMER_RETURN_IF_ERROR(executors_[device]->Set(part.buffer, [&](void* contents) {
        return arrangement->ReadBox(values, buffer.box, buffer.dtype, contents);
      }));
      for (NodeId id : parameter.leaves) {
        if (const auto leaf = values.Find(graph_, id); leaf.ok()) (*leaf)->LetGo();
      }
    }
    return absl::OkStatus();
  });
}

int64_t Job::updates() const {
  for (int32_t device : all_devices_) {
    if (IsHere(device)) return executors_[device]->updates();
  }
  return 0;
}

absl::Status Job::TrainSteps(absl::Span<const HostValues> inputs,
                             absl::Span<const double> learning_rates) {
  ISOMER_RETURN_IF_ERROR(status_);
  for (const auto& [what, count] :
       {std::pair("inputs", inputs.size()), std::pair("learning rates", learning_rates.size())}) {
    if (static_cast<int32_t>(count) == num_steps()) continue;
    return absl::InvalidArgumentError(
        absl::StrCat(what, " of ", count, " steps for the ", num_steps(), " of the schedule"));
  }
  for (int32_t step = 0; step < num_steps(); ++step) {
    ISOMER_RETURN_IF_ERROR(SetInputs(inputs[step], step));
  }
  scale_of_step_ = loss_scale_.value();
  const Executor::StepSettings settings = SettingsOf(learning_rates);
  const std::function<absl::Status()> before_update = std::exchange(before_update_, nullptr);
  if (!LooksAtGradients()) {
    return OnAllTogether([&](Executor* executor) -> absl::Status {
      executor->set_step(settings);
      if (before_update == nullptr) {
        ISOMER_RETURN_IF_ERROR(executor->Run(Phase::kForward, Phase::kUpdate));
        return AdvanceStatistics(executor);
      }
      const Phase last = *held_phase_ == Phase::kUpdate ? Phase::kBackward : Phase::kForward;
      ISOMER_RETURN_IF_ERROR(executor->Run(Phase::kForward, last, Phase::kUpdate));
      ISOMER_RETURN_IF_ERROR(before_update());
      ISOMER_RETURN_IF_ERROR(executor->Run(*held_phase_, Phase::kUpdate));
      return AdvanceStatistics(executor);
    });
  }
  ISOMER_RETURN_IF_ERROR(OnAllTogether([&](Executor* executor) -> absl::Status {
    executor->set_step(settings);
    ISOMER_RETURN_IF_ERROR(executor->Run(Phase::kForward, Phase::kBackward, Phase::kUpdate));
    ISOMER_RETURN_IF_ERROR(AdvanceStatistics(executor));
    return UpdateOn(executor, settings, before_update);
  }));
  NoteGradients();
  return absl::OkStatus();
}

absl::Status Job::AddGradients(const HostValues& inputs) {
  ISOMER_RETURN_IF_ERROR(status_);
  ISOMER_RETURN_IF_ERROR(SetInputs(inputs, 0));
  const bool begins = gradients_added_ == 0;
  const Executor::StepSettings settings = SettingsOf({});
  ISOMER_RETURN_IF_ERROR(OnAllTogether(
      [&](Executor* executor) -> absl::Status {
        executor->set_step(settings);
        ISOMER_RETURN_IF_ERROR(executor->Run(Phase::kForward, Phase::kBackward, Phase::kUpdate));
        ISOMER_RETURN_IF_ERROR(AdvanceStatistics(executor));
        return executor->AddToGradientSums(begins);
      },
      /*goes_on=*/!begins));
  ++gradients_added_;
  return absl::OkStatus();
}

absl::Status Job::UpdateWithMean(double learning_rate) {
  ISOMER_RETURN_IF_ERROR(status_);
  const std::function<absl::Status()> before_update = std::exchange(before_update_, nullptr);
  const auto summed = static_cast<double>(std::exchange(gradients_added_, 0));
  scale_of_step_ = loss_scale_.value() * summed;
  Executor::StepSettings settings = SettingsOf({learning_rate});
  settings.gradient_factor = 1 / summed;
  ISOMER_RETURN_IF_ERROR(OnAllTogether(
      [&](Executor* executor) -> absl::Status {
        ISOMER_RETURN_IF_ERROR(executor->TakeGradientSums());
        executor->set_step(settings);
        return UpdateOn(executor, settings, before_update);
      },
      /*goes_on=*/true));
  NoteGradients();
  return absl::OkStatus();
}

absl::Status Job::WaitForReaders() {
  const std::function<absl::Status()> wait = std::exchange(before_update_, nullptr);
  return wait == nullptr ? absl::OkStatus() : wait();
}

absl::Status Job::SwapAverages() {
  ISOMER_RETURN_IF_ERROR(WaitForReaders());
  return OnAllDevices([&](int32_t device) { return executors_[device]->SwapAverages(); });
}

bool Job::LooksAtGradients() const {
  return options_.finds_loss_scale || options_.needs_gradient_norm() || whole_updates_ != nullptr;
}

Executor::StepSettings Job::SettingsOf(absl::Span<const double> learning_rates) const {
  return {.learning_rates = std::vector<double>(learning_rates.begin(), learning_rates.end()),
          .loss_factor = loss_scale_.value() / schedule_.options.seed};
}

absl::Status Job::UpdateOn(Executor* executor, const Executor::StepSettings& settings,
                           const std::function<absl::Status()>& before_update) {
  const int32_t device = executor->device();
  bool updates = true;
  if (options_.finds_loss_scale || options_.needs_gradient_norm()) {
    ISOMER_ASSIGN_OR_RETURN(updates, InspectGradients(executor));
  }
  if (before_update != nullptr) ISOMER_RETURN_IF_ERROR(before_update());
  if (!updates) return absl::OkStatus();
  if (options_.clip_norm > 0) {
    Executor::StepSettings clipped = settings;
    clipped.gradient_factor *= ClipFactor(options_.clip_norm, norms_[device]);
    executor->set_step(clipped);
  }
  if (whole_updates_ != nullptr) {
    ISOMER_RETURN_IF_ERROR(whole_updates_->Prepare(executor, controls_[device]));
  }
  return executor->Run(Phase::kUpdate, Phase::kUpdate);
}

void Job::NoteGradients() {
  const auto here = std::find_if(all_devices_.begin(), all_devices_.end(),
                                 [this](int32_t device) { return IsHere(device); });
  gradient_norm_ = norms_[*here];
  if (options_.finds_loss_scale) loss_scale_.StepWas(finite_[*here]);
}

absl::StatusOr<bool> Job::InspectGradients(Executor* executor) {
  char& finite = finite_[executor->device()];
  if (!options_.needs_gradient_norm()) {
    ISOMER_ASSIGN_OR_RETURN(const bool here, executor->GradientsAreFinite());
    ISOMER_ASSIGN_OR_RETURN(const std::vector<std::string> all,
                            controls_[executor->device()]->Gather(here ? "1" : "0"));
    return finite = std::find(all.begin(), all.end(), "0") == all.end();
  }
  ISOMER_ASSIGN_OR_RETURN(const double norm, GradientNorm(executor));
  norms_[executor->device()] = norm;
  finite = std::isfinite(norm);
  if (finite || options_.finds_loss_scale) return finite;
  return absl::OutOfRangeError(
      "the norm of the gradients is not finite; try a lower --learning_rate");
}

// Every rank adds the same numbers in the same order.
absl::StatusOr<double> Job::GradientNorm(Executor* executor) {
  std::vector<BufferId> own;
  for (BufferId id : gradients_once_) {
    if (schedule_.buffers[id].device == executor->device()) own.push_back(id);
  }
  ISOMER_ASSIGN_OR_RETURN(const std::vector<double> sums, executor->SumsOfSquares(own));
  ISOMER_ASSIGN_OR_RETURN(const std::vector<std::string> all,
                          controls_[executor->device()]->Gather(BytesOf<double>(sums)));
  std::vector<std::vector<double>> of_device;
  for (const std::string& bytes : all) of_device.push_back(ValuesOf<double>(bytes));
  std::vector<size_t> next(of_device.size(), 0);
  double sum = 0;
  for (BufferId id : gradients_once_) {
    const int32_t device = schedule_.buffers[id].device;
    if (next[device] == of_device[device].size()) {
      return absl::InternalError(absl::StrCat("device ", device, " has sums of too few gradients"));
    }
    sum += of_device[device][next[device]++];
  }
  return std::sqrt(sum) / scale_of_step_;
}

absl::Status Job::Evaluate(const HostValues& inputs) {
  ISOMER_RETURN_IF_ERROR(status_);
  const int32_t step = num_steps() - 1;
  ISOMER_RETURN_IF_ERROR(SetInputs(inputs, step));
  return OnAllTogether([&](Executor* executor) { return executor->RunForward(step); });
}

absl::Status Job::OnAllTogether(const std::function<absl::Status(Executor* executor)>& work,
                                bool goes_on) {
  return OnAllDevices([&](int32_t device) -> absl::Status {
    ISOMER_RETURN_IF_ERROR(controls_[device]->Meet());
    const auto start = std::chrono::steady_clock::now();
    ISOMER_RETURN_IF_ERROR(work(executors_[device].get()));
    device_us_[device] = UsSince(start) + (goes_on ? device_us_[device] : 0);
    return absl::OkStatus();
  });
}

absl::StatusOr<std::vector<std::string>> Job::FromAllDevices(
    const std::function<std::string(int32_t device)>& bytes_of) {
  ISOMER_RETURN_IF_ERROR(status_);
  std::vector<std::string> all(all_devices_.size());
  for (int32_t device : all_devices_) {
    if (IsHere(device)) all[device] = bytes_of(device);
  }
  ControlPlane* const others = options_.control;
  if (others == nullptr) return all;
  auto gathered = others->Gather(all[others->rank()]);
  status_ = gathered.status();
  return gathered;
}

absl::StatusOr<std::vector<std::vector<char>>> Job::Fetch(absl::Span<const BufferId> buffers,
                                                          int32_t receiver) {
  std::vector<std::vector<char>> contents(buffers.size());
  ControlPlane* const others = options_.control;
  if (others == nullptr) return contents;
  std::vector<Send> sends;
  std::vector<Receive> receives;
  std::vector<std::vector<char>> sent;
  sent.reserve(buffers.size());
  for (size_t b = 0; b < buffers.size(); ++b) {
    if (buffers[b] == kNoBuffer) continue;
    const Buffer& buffer = schedule_.buffers[buffers[b]];
    if (!IsHere(buffer.device)) {
      if (!Receives(receiver)) continue;
      contents[b].resize(buffer.bytes());
      receives.push_back({buffer.device, contents[b].data(), buffer.bytes()});
      continue;
    }
    const auto is_receiver = [&](int32_t device) {
      return !IsHere(device) && (receiver == kAll || device == receiver);
    };
    if (std::none_of(all_devices_.begin(), all_devices_.end(), is_receiver)) continue;
    const absl::Status read = executors_[buffer.device]->Get(buffers[b], [&](const void* held) {
      const char* bytes = static_cast<const char*>(held);
      sent.emplace_back(bytes, bytes + buffer.bytes());
      return absl::OkStatus();
    });
    if (!read.ok()) return EndWith(read);
    for (int32_t device : all_devices_) {
      if (is_receiver(device)) sends.push_back({device, sent.back().data(), buffer.bytes()});
    }
  }
  status_ = others->Exchange(sends, receives);
  ISOMER_RETURN_IF_ERROR(status_);
  return contents;
}

// The meaning: one copy of each shard, partials summed.
absl::StatusOr<Array<double>> Job::Collect(TensorRef tensor, std::vector<BufferId> shards) {
  for (size_t s = 0; s < shards.size(); ++s) {
    const ShardCoordinates at = CoordinatesOfShard(graph_.type(tensor), static_cast<int64_t>(s));
    if (at.copy != 0) shards[s] = kNoBuffer;
  }
  return SumOf(tensor, shards, kAll);
}

absl::StatusOr<Array<double>> Job::SumOf(TensorRef tensor, absl::Span<const BufferId> buffers,
                                         int32_t receiver) {
  ISOMER_ASSIGN_OR_RETURN(const std::vector<std::vector<char>> fetched, Fetch(buffers, receiver));
  if (!Receives(receiver)) return Array<double>();
  Array<double> array(graph_.type(tensor).Sizes());
  for (size_t b = 0; b < buffers.size(); ++b) {
    if (buffers[b] == kNoBuffer) continue;
    const Buffer& buffer = schedule_.buffers[buffers[b]];
    const auto add = [&](const void* held) {
      AddFromBuffer(buffer.box, buffer.dtype, held, &array);
      return absl::OkStatus();
    };
    const absl::Status added = IsHere(buffer.device)
                                   ? executors_[buffer.device]->Get(buffers[b], add)
                                   : add(fetched[b].data());
    if (!added.ok()) return EndWith(added);
  }
  return array;
}

absl::StatusOr<Array<double>> Job::Output(absl::string_view name, int32_t step) {
  ISOMER_RETURN_IF_ERROR(status_);
  for (const State& state : StatesOfSchedule(graph_, schedule_)) {
    if (state.name != name) continue;  // Its next value is where the input was.
    for (const Schedule::HostTensor& input : schedule_.inputs) {
      if (!absl::c_linear_search(input.leaves, state.input)) continue;
      return Collect(input.tensor, schedule_.shards.at(input.tensor));
    }
  }
  for (const Graph::NamedOutput& output : graph_.outputs()) {
    if (output.name != name) continue;
    return Collect(output.tensor, InStep(schedule_.OutputShards(output.tensor), step));
  }
  return absl::NotFoundError(absl::StrCat("there is no output '", name, "'"));
}

std::vector<BufferId> Job::InStep(std::vector<BufferId> ids, int32_t step) const {
  for (BufferId& id : ids) id = schedule_.InStep(id, step);
  return ids;
}

absl::Status Job::ForEachPartOfLeaf(
    bool gradients, int32_t step, int32_t receiver,
    const std::function<void(const std::string& leaf, const Array<double>& part)>& f,
    std::set<std::string>* rounded) {
  ISOMER_RETURN_IF_ERROR(status_);
  for (const Schedule::HostTensor& tensor : schedule_.parameters) {
    if (!tensor.trainable) continue;
    const bool is_rounded = HasMaster(graph_.type(tensor.tensor).dtype) &&
                            !HasMaster(graph_.node(tensor.leaves[0]).outputs[0].dtype);
    if (!gradients && is_rounded && schedule_.DistinctGradients(tensor).empty()) {
      for (NodeId leaf : tensor.leaves) rounded->insert(graph_.node(leaf).name);
      continue;
    }
    ISOMER_ASSIGN_OR_RETURN(const Array<double> value,
                            SumOf(tensor.tensor,
                                  InStep(gradients ? schedule_.DistinctGradients(tensor)
                                                   : schedule_.DistinctTrained(tensor),
                                         step),
                                  receiver));
    if (!Receives(receiver)) continue;
    const absl::StatusOr<HostValues> parts = UnarrangeHostTensor(graph_, tensor, value);
    if (!parts.ok()) return EndWith(parts.status());
    for (const auto& [name, part] : *parts) f(name, part);
  }
  return absl::OkStatus();
}

absl::StatusOr<HostValues> Job::CollectLeaves(bool gradients, int32_t step) {
  HostValues leaves;
  for (int id = 0; id < graph_.num_nodes(); ++id) {
    const Node& node = graph_.node(id);
    if (node.op.kind() == OpKind::kWeight) {
      leaves.emplace(node.name, Array<double>(node.outputs[0].Sizes()));
    }
  }
  const double scale = gradients ? 1 / scale_of_step_ : 1;
  std::set<std::string> rounded;
  const auto add = [&](const std::string& name, const Array<double>& part) {
    Array<double>& leaf = leaves.at(name);
    for (int64_t i = 0; i < leaf.size(); ++i) leaf.data[i] += scale * part.data[i];
  };
  ISOMER_RETURN_IF_ERROR(ForEachPartOfLeaf(gradients, step, kAll, add, &rounded));
  if (!gradients) {
    ForEachUnheldWeight([&](const std::string& name, int64_t element, float value) {
      leaves.at(name).data[element] = value;
    });
  }
  for (const std::string& name : rounded) leaves.erase(name);
  return leaves;
}

absl::StatusOr<std::map<std::string, std::vector<float>>> Job::ParametersOn(int32_t receiver) {
  std::map<std::string, std::vector<float>> leaves;
  std::set<std::string> rounded;
  const auto add = [&](const std::string& name, const Array<double>& part) {
    std::vector<float>& leaf = leaves[name];
    leaf.resize(part.size());
    // Several arrangements of one weight hold parts of it, each zero where the others are.
    for (int64_t i = 0; i < part.size(); ++i) leaf[i] += static_cast<float>(part.data[i]);
  };
  ISOMER_RETURN_IF_ERROR(
      ForEachPartOfLeaf(/*gradients=*/false, num_steps() - 1, receiver, add, &rounded));
  if (Receives(receiver)) {
    ForEachUnheldWeight([&](const std::string& name, int64_t element, float value) {
      leaves.at(name)[element] = value;
    });
  }
  for (const std::string& name : rounded) leaves.erase(name);
  return leaves;
}

absl::StatusOr<double> Job::StepUs() {
  ISOMER_ASSIGN_OR_RETURN(const std::vector<std::string> all, FromAllDevices([&](int32_t device) {
                            return BytesOf<double>({&device_us_[device], 1});
                          }));
  double slowest = 0;
  for (const std::string& bytes : all) slowest = std::max(slowest, ValuesOf<double>(bytes)[0]);
  return slowest / num_steps();
}

absl::StatusOr<std::vector<Job::MemoryUse>> Job::UsedMemory() {
  ISOMER_ASSIGN_OR_RETURN(
      const std::vector<std::string> all, FromAllDevices([&](int32_t device) {
        const Executor& executor = *executors_[device];
        const MemoryUse use{executor.arena_bytes(), executor.peak_bytes(), executor.kernel_bytes()};
        return BytesOf<MemoryUse>({&use, 1});
      }));
  std::vector<MemoryUse> uses;
  for (const std::string& bytes : all) uses.push_back(ValuesOf<MemoryUse>(bytes)[0]);
  return uses;
}

void Job::StartTrace() {
  for (int32_t device : all_devices_) {
    if (IsHere(device)) executors_[device]->set_trace(true);
  }
}

absl::StatusOr<std::string> Job::ChromeTrace() {
  ISOMER_ASSIGN_OR_RETURN(const std::vector<std::string> all, FromAllDevices([&](int32_t device) {
                            const std::vector<TaskRun> times = executors_[device]->times();
                            return BytesOf<TaskRun>(times);
                          }));
  std::vector<std::vector<TaskRun>> times;
  double origin_us = std::numeric_limits<double>::infinity();
  for (const std::string& bytes : all) {
    times.push_back(ValuesOf<TaskRun>(bytes));
    for (const TaskRun& time : times.back()) origin_us = std::min(origin_us, time.start_us);
  }
  Json trace;
  Json& events = trace["traceEvents"] = Json::EmptyArray();
  const int64_t queues = options_.execution.num_queues();
  for (size_t d = 0; d < times.size(); ++d) {
    for (int64_t queue = 0; queue < queues; ++queue) {
      std::string name = absl::StrCat("device ", d);
      if (queues > 1) absl::StrAppend(&name, " ", QueueName(static_cast<int32_t>(queue)));
      events.Append(TraceRowName(0, static_cast<int64_t>(d) * queues + queue, name));
    }
    for (const TaskRun& time : times[d]) {
      const Task& task = schedule_.tasks[time.task];
      Json event = TraceSpan(0, static_cast<int64_t>(d) * queues + time.queue,
                             absl::StrCat(TaskKindName(task.kind), " ", graph_.Label(task.node)),
                             time.start_us - origin_us, time.end_us - time.start_us);
      event["cat"] = PhaseName(task.phase);
      event["args"]["task"] = time.task;
      event["args"]["bytes"] = task.bytes;
      event["args"]["flops"] = task.flops;
      if (task.moment != kNoMoment) event["args"]["micro_batch"] = task.moment;
      events.Append(std::move(event));
    }
  }
  return trace.Print();
}

}  // namespace isomer
