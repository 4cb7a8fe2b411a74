#include "runtime/execution/executor.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <memory>
#include <tuple>
#include <type_traits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "pcg/schedule/memory/packing.h"
#include "pcg/support/check.h"
#include "pcg/support/status_macros.h"
#include "runtime/device/allocation_count.h"
#include "runtime/device/moves.h"
#include "runtime/device/task_calls.h"
#include "runtime/execution/evaluation_calls.h"

namespace isomer {
namespace {

double Now() {
  return std::chrono::duration<double, std::micro>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

// Of elements from `place` on.
template <typename T>
T* FromPlace(T* data, int64_t place, DataType dtype) {
  using Byte = std::conditional_t<std::is_const_v<T>, const char, char>;
  return static_cast<Byte*>(data) + place * BytesPerElement(dtype);
}

// With another rate; a direction's decay stays as it is.
UpdateFactors Scaled(const UpdateFactors& factors, double learning_rate, const UpdatePiece& piece) {
  UpdateFactors scaled = factors;
  if (piece.is_direction) {
    scaled = {.rate = learning_rate * piece.factor, .shrink = factors.shrink, .pull = 0};
  } else {
    scaled.rate *= piece.factor;
    scaled.shrink = 1 - piece.factor * (1 - factors.shrink);
  }
  return scaled;
}

}  // namespace

Executor::Executor(const Graph& graph, const Schedule& schedule, int32_t device, Backend* backend,
                   Communicator* communicator, const Execution& execution)
    : graph_(graph),
      schedule_(schedule),
      device_(device),
      backend_(*backend),
      operations_(backend->operations()),
      communicator_(*communicator),
      arena_(nullptr, [](char*) {}),
      host_arena_(nullptr, [](char*) {}),
      execution_(execution),
      step_values_(nullptr, [](char*) {}),
      step_values_on_device_(nullptr, [](char*) {}),
      progress_(nullptr, [](char*) {}),
      rule_(schedule.options.update.optimizer),
      wide_states_(nullptr, [](char*) {}),
      gradient_sums_(nullptr, [](char*) {}) {
  for (size_t q = 0; q < messages_.size(); ++q) {
    // Each queue of communications has a channel; the others send nothing.
    const bool sends = q >= kCommunicationQueue && q <= kBackwardQueue;
    const int channel = sends ? static_cast<int>(q) - kCommunicationQueue : 0;
    messages_[q].communicator = &communicator->Channel(channel);
  }
}

Executor::~Executor() { device_queues_.reset(); }

absl::Status Executor::Measured(const std::function<absl::Status()>& work) {
  ResetPeakAllocations();
  const int64_t before = ThreadAllocations().live;
  ISOMER_RETURN_IF_ERROR(work());
  const Allocations after = ThreadAllocations();
  std::lock_guard lock(mutex_);
  HeapUse& use = heap_[std::this_thread::get_id()];
  use.passing = std::max(use.passing, after.peak - std::max(before, after.live));
  use.kept += after.live - before;
  return absl::OkStatus();
}

int64_t Executor::peak_bytes() const {
  int64_t bytes = arena_bytes() + gradient_sums_bytes_;
  for (const auto& [thread, use] : heap_) bytes += use.passing;
  return bytes;
}

int64_t Executor::kernel_bytes() const {
  int64_t bytes = 0;
  for (const auto& [thread, use] : heap_) bytes += use.kept;
  return bytes;
}

std::vector<TaskRun> Executor::times() const {
  std::vector<TaskRun> times;
  for (const std::vector<TaskRun>& of_queue : times_) {
    times.insert(times.end(), of_queue.begin(), of_queue.end());
  }
  return times;
}

absl::Status Executor::MakeKernels() {
  return Measured([this]() -> absl::Status {
    for (int32_t t : schedule_.programs[device_]) {
      if (!RunsKernel(schedule_.tasks[t])) continue;
      ISOMER_ASSIGN_OR_RETURN(launches_[t].kernel,
                              backend_.MakeKernel(CallOfTask(graph_, schedule_, t)));
      if (experts_ != nullptr) experts_->AddTask(t);
      ISOMER_RETURN_IF_ERROR(MakeEvaluation(t));
    }
    return absl::OkStatus();
  });
}

absl::Status Executor::MakeEvaluation(int32_t t) {
  if (!evaluates_otherwise_) return absl::OkStatus();
  ISOMER_ASSIGN_OR_RETURN(const std::optional<EvaluationCall> evaluation,
                          EvaluationCallOf(graph_, schedule_, entries_, t));
  if (!evaluation.has_value()) return absl::OkStatus();
  ISOMER_ASSIGN_OR_RETURN(evaluations_[t].kernel, backend_.MakeKernel(evaluation->call));
  if (!evaluation->statistics.has_value()) return absl::OkStatus();
  if (statistics_ == nullptr)
    statistics_ = std::make_unique<RunningStatistics>(entries_, &backend_);
  return statistics_->AddTask(t, *evaluation->statistics, evaluation->call.dtypes.back());
}

std::map<int32_t, int64_t> Executor::Workspaces() const {
  std::map<int32_t, int64_t> bytes;
  for (const auto& [t, launch] : launches_) {
    if (launch.kernel->workspace_bytes() > 0) bytes[t] = launch.kernel->workspace_bytes();
  }
  for (const auto& [t, launch] : evaluations_) {
    if (launch.kernel->workspace_bytes() == 0) continue;
    bytes[t] = std::max(bytes[t], launch.kernel->workspace_bytes());
  }
  return bytes;
}

absl::Status Executor::Prepare(const MemoryPlan& memory) {
  memory_ = &memory;
  program_ = CompileProgramOf(schedule_, memory, execution_.num_queues(), device_);
  ISOMER_ASSIGN_OR_RETURN(arena_, backend_.Allocate(memory.arena_bytes[device_]));
  ISOMER_ASSIGN_OR_RETURN(host_arena_, backend_.AllocateOnHost(memory.host_bytes[device_]));
  for (auto* launches : {&launches_, &evaluations_}) {
    for (auto& [t, launch] : *launches) {
      const Task& task = schedule_.tasks[t];
      for (BufferId id : task.reads) launch.reads.push_back(id == kNoBuffer ? nullptr : data(id));
      for (BufferId id : task.writes) launch.writes.push_back(id == kNoBuffer ? nullptr : data(id));
      if (launch.kernel->workspace_bytes() == 0) continue;
      ISOMER_CHECK(task.workspace_bytes >= launch.kernel->workspace_bytes());
      launch.workspace = arena_.get() + memory.ScratchOffset(t, device_);
    }
  }
  for (auto& [t, launch] : evaluations_) {
    // What the call makes in training besides, and saves for its gradient, is not asked for.
    launch.writes.resize(1);
    if (statistics_ == nullptr || !statistics_->has(t)) continue;
    for (const void* of_channels : statistics_->MeanAndVariance(t)) {
      launch.reads.push_back(of_channels);
    }
  }
  ISOMER_ASSIGN_OR_RETURN(step_values_, backend_.AllocateOnHost(step_values_bytes()));
  std::uninitialized_default_construct_n(reinterpret_cast<StepValues*>(step_values_.get()),
                                         schedule_.num_steps());
  if (!operations_.shares_host_memory()) {
    ISOMER_ASSIGN_OR_RETURN(step_values_on_device_, backend_.Allocate(step_values_bytes()));
  }
  if (schedule_.options.training &&
      schedule_.options.update.state_precision != DataType::kFloat32) {
    ISOMER_ASSIGN_OR_RETURN(wide_states_,
                            backend_.Allocate(OptimizerTraits::kMostStates * MostWideStates() *
                                              static_cast<int64_t>(sizeof(float))));
  }
  ISOMER_ASSIGN_OR_RETURN(device_queues_, backend_.MakeQueues());
  if (device_queues_ != nullptr) {
    if (communicator_.is_asynchronous()) {
      ISOMER_ASSIGN_OR_RETURN(progress_, backend_.AllocateOnHost(2 * sizeof(int64_t)));
    }
    queues_ = MakeDeviceQueueRunner(program_, device_queues_.get());
    records_ = execution_.kind == ExecutionKind::kThreaded &&
               (schedule_.programs.size() == 1 || communicator_.can_be_recorded());
  } else if (execution_.kind != ExecutionKind::kAdversarial) {
    queues_ = MakeQueueRunner(program_, execution_.kind);
  } else {
    queues_ = MakeAdversarialRunner(
        CompileProgram(schedule_, memory, execution_.num_queues()),
        [this](int32_t t) -> absl::Span<const int32_t> { return schedule_.tasks[t].devices; },
        execution_.seed, device_);
    watch_ = std::make_unique<MemoryWatch>(schedule_, memory, program_, device_, arena_.get(),
                                           host_arena_.get());
  }
  return RunTasks(Phase::kLoad, Phase::kLoad, 0, Phase::kLoad);  // The optimizer's state is zero.
}

absl::Status Executor::Run(Phase first, Phase last, Phase then) {
  return RunTasks(first, last, 0, then);
}

absl::Status Executor::RunForward(int32_t step) {
  if (statistics_ != nullptr) ISOMER_RETURN_IF_ERROR(statistics_->Load());
  evaluates_ = true;
  const absl::Status status = RunTasks(Phase::kForward, Phase::kForward, step, Phase::kForward);
  evaluates_ = false;
  return status;
}

absl::Status Executor::RunTasks(Phase first, Phase last, int32_t from_step, Phase then) {
  const auto is_of = [&](int32_t place, Phase to) {
    const Task& task = schedule_.tasks[program_[place].task];
    return task.phase >= first && task.phase <= to && task.step >= from_step;
  };
  QueueWork work = {
      .selects = [&](int32_t place) { return is_of(place, last); },
      .run = [&](int32_t place) { return RunCommand(place); },
      .on_thread = [&](const std::function<absl::Status()>& all) { return Measured(all); },
      .abort = [&](const absl::Status& status) { communicator_.Abort(status); },
      .computes = [&](bool computes) { communicator_.SetComputes(computes); },
  };
  if (watch_ != nullptr) {
    watch_->Begin([&](int32_t place) { return is_of(place, then); });
    work.before = [&](int32_t place, const QueueClock& over) {
      return Named(watch_->Before(place, over), program_[place].task);
    };
    work.after = [&](int32_t place) { watch_->After(place); };
  }
  auto* const values = reinterpret_cast<StepValues*>(step_values_.get());
  for (int32_t step = 0; step < schedule_.num_steps(); ++step) {
    // Gradients are those of the loss times the seed and the factor.
    const double scale = schedule_.options.seed * step_.loss_factor;
    values[step] = {
        .loss_factor = step_.loss_factor,
        .update = FactorsOf(
            {.optimizer = rule_,
             .number = steps_ + step + 1,
             .learning_rate = step_.learning_rates.empty() ? 0 : step_.learning_rates[step],
             .gradient_scale = step_.gradient_factor / scale})};
  }
  if (device_queues_ != nullptr) {
    ISOMER_RETURN_IF_ERROR(RunOnDeviceQueues({first, last, from_step}, work));
  } else {
    if (step_values_on_device_ != nullptr) {
      ISOMER_RETURN_IF_ERROR(
          operations_.FromHost(values, step_values_bytes(), step_values_on_device_.get()));
    }
    ISOMER_RETURN_IF_ERROR(queues_->Run(work));
    ISOMER_RETURN_IF_ERROR(operations_.Wait(arena_.get()));
  }
  const bool updates = averaging_ == Averaging::kFollows && last >= Phase::kUpdate;
  if (updates && first <= Phase::kUpdate) steps_ += schedule_.num_steps();
  if (first != Phase::kLoad) return absl::OkStatus();
  steps_ = 0;
  if (!schedule_.options.training || !schedule_.options.update.averages) return absl::OkStatus();
  averaging_ = Averaging::kBegins;
  const absl::Status begun = BeginAverages();
  averaging_ = Averaging::kFollows;
  return begun;
}

// Those of the weights that were loaded.
absl::Status Executor::BeginAverages() {
  for (int32_t t : schedule_.programs[device_]) {
    const Task& task = schedule_.tasks[t];
    if (task.kind == TaskKind::kUpdate) ISOMER_RETURN_IF_ERROR(RunUpdate(t));
  }
  return absl::OkStatus();
}

absl::Status Executor::SwapAverages() {
  averaging_ = Averaging::kSwaps;
  const absl::Status swapped = Run(Phase::kUpdate, Phase::kUpdate);
  averaging_ = Averaging::kFollows;
  return swapped;
}

absl::Status Executor::RunOnDeviceQueues(const RunKey& key, const QueueWork& work) {
  const LeavesQueues leaves(device_queues_.get());
  if (progress_ != nullptr) std::memset(progress_.get(), 0, 2 * sizeof(int64_t));
  tasks_before_ += static_cast<int64_t>(schedule_.tasks.size());
  const absl::Status status = GiveAndFinish(key, work);
  // Else the device would wait for others for ever.
  if (!status.ok()) Abort(status);
  return status;
}

void Executor::Abort(const absl::Status& status) {
  if (!communicator_.is_asynchronous()) return;
  if (device_queues_ != nullptr) device_queues_->DropRecordings();
  runs_.clear();
  communicator_.Abort(status);
}

absl::Status Executor::MarkProgress(int32_t word, int32_t task) {
  auto* const words = reinterpret_cast<int64_t*>(progress_.get());
  return operations_.Fill(task + 1, 1, DataType::kInt64, words + word);
}

absl::Status Executor::Poll() {
  if (progress_ == nullptr) return absl::OkStatus();
  auto* const words = reinterpret_cast<int64_t*>(progress_.get());
  // In this order: what has ended has begun.
  const int64_t ended = std::atomic_ref(words[1]).load(), begun = std::atomic_ref(words[0]).load();
  Communicator::Progress progress = {.begun = tasks_before_ + begun,
                                     .ended = tasks_before_ + ended};
  if (begun == 0) return communicator_.CheckProgress(progress);
  const int32_t t = static_cast<int32_t>(begun) - 1;
  progress.call = TaskKindName(schedule_.tasks[t].kind);
  progress.group = schedule_.tasks[t].devices;
  const absl::Status status = communicator_.CheckProgress(progress);
  return absl::IsDeadlineExceeded(status) ? Named(status, t) : status;
}

// The first run is given command by command: libraries load what they need, and communicators
// connect, which cannot be recorded.
absl::Status Executor::GiveAndFinish(const RunKey& key, const QueueWork& work) {
  const auto give_all = [&]() -> absl::Status {
    ISOMER_RETURN_IF_ERROR(device_queues_->Enter(kComputeQueue));
    ISOMER_RETURN_IF_ERROR(
        operations_.Copy(step_values_.get(), step_values_bytes(), step_values_on_device_.get()));
    return queues_->Run(work);
  };
  traced_.clear();
  const auto [run, is_first] = runs_.try_emplace(key);
  if (is_first || trace_ || !records_) {
    if (trace_ && holds_) {
      ISOMER_RETURN_IF_ERROR(device_queues_->Enter(kComputeQueue));
      ISOMER_RETURN_IF_ERROR(device_queues_->Hold());
    }
    const absl::Status given = give_all();
    if (trace_ && holds_) device_queues_->Release();
    ISOMER_RETURN_IF_ERROR(given);
  } else {
    std::optional<int32_t>& recording = run->second;
    if (!recording) {
      ISOMER_RETURN_IF_ERROR(device_queues_->BeginRecording());
      const absl::Status given = give_all();
      const absl::StatusOr<int32_t> recorded = device_queues_->EndRecording();
      ISOMER_RETURN_IF_ERROR(given);
      ISOMER_ASSIGN_OR_RETURN(recording, recorded);
    }
    ISOMER_RETURN_IF_ERROR(device_queues_->Replay(*recording));
  }
  const double begin = trace_ ? Now() : 0;
  ISOMER_RETURN_IF_ERROR(device_queues_->Finish([this] { return Poll(); }));
  return trace_ ? ReadTimes(begin) : absl::OkStatus();
}

// The device's clock has no zero: what it did began when all of it was given, at the latest.
absl::Status Executor::ReadTimes(double given_us) {
  const int32_t begin = BeginMark(program_), free = FirstFreeMark(program_);
  for (const int32_t place : traced_) {
    ISOMER_ASSIGN_OR_RETURN(const double start, device_queues_->ElapsedUs(begin, free + 2 * place));
    ISOMER_ASSIGN_OR_RETURN(const double end,
                            device_queues_->ElapsedUs(begin, free + 2 * place + 1));
    const auto& [task, queue] = std::tie(program_[place].task, program_[place].queue);
    times_[queue].push_back({task, queue, given_us + start, given_us + end});
  }
  return absl::OkStatus();
}

std::set<BufferId> Executor::GradientsOfUpdates() const {
  std::set<BufferId> gradients;
  for (int32_t t : schedule_.programs[device_]) {
    const Task& task = schedule_.tasks[t];
    if (task.kind != TaskKind::kUpdate) continue;
    for (int32_t s = 0; s < task.segments; ++s) gradients.insert(task.reads[task.segments + s]);
  }
  return gradients;
}

absl::StatusOr<bool> Executor::GradientsAreFinite() {
  for (BufferId gradient : GradientsOfUpdates()) {
    ISOMER_ASSIGN_OR_RETURN(
        const bool finite,
        operations_.AreFinite(buffer(gradient).dtype, data(gradient), elements(gradient)));
    if (!finite) return false;
  }
  return true;
}

absl::Status Executor::AddToGradientSums(bool begins) {
  const std::set<BufferId> gradients = GradientsOfUpdates();
  if (gradient_sums_ == nullptr) {
    for (BufferId id : gradients) gradient_sums_bytes_ += elements(id) * sizeof(float);
    ISOMER_ASSIGN_OR_RETURN(gradient_sums_, backend_.Allocate(gradient_sums_bytes_));
  }
  char* sum = gradient_sums_.get();
  for (BufferId id : gradients) {
    const DataType dtype = buffer(id).dtype;
    ISOMER_RETURN_IF_ERROR(
        begins ? operations_.Convert(dtype, data(id), elements(id), DataType::kFloat32, sum)
               : operations_.Add(dtype, data(id), elements(id), DataType::kFloat32, sum));
    sum += elements(id) * sizeof(float);
  }
  return operations_.Wait(arena_.get());
}

absl::Status Executor::TakeGradientSums() {
  const char* sum = gradient_sums_.get();
  for (BufferId id : GradientsOfUpdates()) {
    ISOMER_RETURN_IF_ERROR(
        operations_.Convert(DataType::kFloat32, sum, elements(id), buffer(id).dtype, data(id)));
    sum += elements(id) * sizeof(float);
  }
  return operations_.Wait(arena_.get());
}

absl::StatusOr<std::vector<double>> Executor::SumsOfSquares(absl::Span<const BufferId> ids) {
  std::vector<double> sums;
  for (BufferId id : ids) {
    ISOMER_ASSIGN_OR_RETURN(const double sum,
                            operations_.SumOfSquares(buffer(id).dtype, data(id), elements(id)));
    sums.push_back(sum);
  }
  return sums;
}

absl::Status Executor::Set(BufferId id, const HostWriter& write) {
  if (operations_.shares_host_memory() || IsOnHost(schedule_, buffer(id))) return write(data(id));
  // Aligned for all types.
  std::vector<int64_t> staged(buffer(id).bytes() / sizeof(int64_t) + 1);
  ISOMER_RETURN_IF_ERROR(write(staged.data()));
  return operations_.FromHost(staged.data(), buffer(id).bytes(), data(id));
}

absl::Status Executor::Get(BufferId id, const HostReader& read) {
  if (operations_.shares_host_memory() || IsOnHost(schedule_, buffer(id))) return read(data(id));
  std::vector<int64_t> staged(buffer(id).bytes() / sizeof(int64_t) + 1);
  ISOMER_RETURN_IF_ERROR(operations_.ToHost(data(id), buffer(id).bytes(), staged.data()));
  return read(staged.data());
}

absl::Status Executor::Named(const absl::Status& status, int32_t t) const {
  if (status.ok()) return status;
  return absl::Status(status.code(),
                      absl::StrCat("device ", device_, ": ", graph_.Label(schedule_.tasks[t].node),
                                   ": ", status.message()));
}

absl::Status Executor::RunCommand(int32_t place) {
  const auto& [task, queue] = std::tie(program_[place].task, program_[place].queue);
  const bool by_marks = trace_ && device_queues_ != nullptr;
  const int32_t begin_mark = FirstFreeMark(program_) + 2 * place;
  if (by_marks) ISOMER_RETURN_IF_ERROR(device_queues_->Mark(begin_mark));
  const bool shows_progress = progress_ != nullptr && IsCommunication(schedule_.tasks[task].kind);
  if (shows_progress) ISOMER_RETURN_IF_ERROR(MarkProgress(0, task));
  const double start = trace_ ? Now() : 0;
  absl::Status status = RunTask(task);
  if (shows_progress && status.ok()) status = MarkProgress(1, task);
  if (by_marks && status.ok()) {
    status = device_queues_->Mark(begin_mark + 1);
    traced_.push_back(place);
  } else if (trace_) {
    times_[queue].push_back({task, queue, start, Now()});
  }
  // A communication reports the error of the rank that failed first.
  return IsCommunication(schedule_.tasks[task].kind) ? status : Named(status, task);
}

absl::Status Executor::RunTask(int32_t t) {
  const Task& task = schedule_.tasks[t];
  switch (task.kind) {
    case TaskKind::kLoad:
    case TaskKind::kFeed:
    case TaskKind::kUnload:
      break;  // The host's.
    case TaskKind::kCompute:
    case TaskKind::kComputeGradient:
      return RunKernel(t);
    case TaskKind::kFill:
      if (task.value != 0) {
        return operations_.FillScaled(task.value, &step_values(task.step).loss_factor,
                                      elements(task.writes[0]), buffer(task.writes[0]).dtype,
                                      data(task.writes[0]));
      }
      return operations_.Fill(0, elements(task.writes[0]), buffer(task.writes[0]).dtype,
                              data(task.writes[0]));
    case TaskKind::kAccumulate:
      return operations_.Add(buffer(task.reads[0]).dtype, data(task.reads[0]),
                             elements(task.writes[0]), buffer(task.writes[0]).dtype,
                             data(task.writes[0]));
    case TaskKind::kConvert:
      return operations_.Convert(buffer(task.reads[0]).dtype, data(task.reads[0]),
                                 elements(task.writes[0]), buffer(task.writes[0]).dtype,
                                 data(task.writes[0]));
    case TaskKind::kOffload:
    case TaskKind::kFetch:
      if (evaluates_) return absl::OkStatus();  // There is no backward pass.
      return operations_.Copy(data(task.reads[0]), buffer(task.reads[0]).bytes(),
                              data(task.writes[0]));
    case TaskKind::kUpdate:
      return RunUpdate(t);
    case TaskKind::kLocal:
      return RunLocalMoves(task);
    case TaskKind::kSendReceive:
      return RunTransfers(t, &messages_[QueueOf(task, execution_.num_queues())]);
    case TaskKind::kAllReduce:
    case TaskKind::kReduceScatter:
    case TaskKind::kAllGather:
    case TaskKind::kAllToAll:
    case TaskKind::kReduce:
    case TaskKind::kBroadcast:
      return RunCollective(t, &messages_[QueueOf(task, execution_.num_queues())]);
  }
  return absl::InternalError(absl::StrCat("a program with a ", TaskKindName(task.kind)));
}

absl::Status Executor::RunKernel(int32_t t) {
  const auto evaluation = evaluates_ ? evaluations_.find(t) : evaluations_.end();
  const Launch& launch = evaluation == evaluations_.end() ? launches_.at(t) : evaluation->second;
  if (experts_ != nullptr && experts_->has(t)) {
    // Not what is computed again, nor test steps of a training.
    const bool tests = evaluates_ && schedule_.options.training;
    const bool counts = schedule_.tasks[t].phase == Phase::kForward && !tests;
    ISOMER_RETURN_IF_ERROR(experts_->Look(t, launch.reads, counts));
  }
  ISOMER_RETURN_IF_ERROR(launch.kernel->Run(launch.reads, launch.writes, launch.workspace));
  if (statistics_ == nullptr || !statistics_->has(t)) return absl::OkStatus();
  // Outputs 1 and 2 are the statistics.
  if (!evaluates_) return statistics_->Keep(t, launch.writes[1], launch.writes[2]);
  const auto [mean, variance] = statistics_->InFloat32(t);
  const int64_t bytes = statistics_->count(t) * static_cast<int64_t>(sizeof(float));
  const std::vector<void*>& of_training = launches_.at(t).writes;
  ISOMER_RETURN_IF_ERROR(operations_.Copy(mean, bytes, of_training[1]));
  return operations_.Copy(variance, bytes, of_training[2]);
}

Executor::Operands Executor::Operands::From(int64_t place) const {
  Operands from{.gradient = {gradient.dtype, FromPlace(gradient.data, place, gradient.dtype)},
                .weights = weights + place,
                .decays = decays};
  for (float* state : states) from.states.push_back(state + place);
  return from;
}

Executor::Operands Executor::OperandsOf(int32_t t, int32_t s) {
  const Task& task = schedule_.tasks[t];
  const int32_t segments = task.segments;
  const BufferId trained = task.reads[s], gradient = task.reads[segments + s];
  const Box& part = buffer(task.writes[s]).box;
  Operands operands{.gradient = {buffer(gradient).dtype, data(gradient)}};
  operands.decays = decaying_ != nullptr && decaying_->contains(buffer(trained).tensor);
  for (int i = 0; i < NumStates(rule_.optimizer); ++i) {
    operands.states.push_back(static_cast<float*>(data(task.writes[(i + 1) * segments + s])));
  }
  operands.weights = static_cast<const float*>(data(trained));
  if (const int64_t offset = LineOffset(part, buffer(trained).box); offset >= 0) {
    operands.weights += offset;
    return operands;
  }
  operands.copied.resize(part.Volume());
  CopyRegion(part, buffer(trained).box, data(trained), part, operands.copied.data(), sizeof(float));
  operands.weights = operands.copied.data();
  return operands;
}

UpdateFactors Executor::FactorsAt(double learning_rate) const {
  const double scale = schedule_.options.seed * step_.loss_factor;
  return FactorsOf({.optimizer = rule_,
                    .number = steps_ + 1,
                    .learning_rate = learning_rate,
                    .gradient_scale = step_.gradient_factor / scale});
}

absl::Status Executor::SwapOrAverage(const Task& task, int64_t count, const float* weights,
                                     float* updated, float* averages, const LowWeights& low) {
  switch (averaging_) {
    case Averaging::kBegins:
      AverageWeights(1, count, weights, averages);
      break;
    case Averaging::kSwaps:
      SwapWeights(count, weights, updated, averages, low);
      break;
    case Averaging::kFollows:
      AverageWeights(average_.RateOf(steps_ + task.step + 1), count, updated, averages);
      break;
  }
  return absl::OkStatus();
}

// Some numbers at a time: their states are widened, and what becomes of these is rounded to
// nearest.
absl::Status Executor::UpdateLowStates(const UpdateRule& rule, const UpdateFactors& factors,
                                       const Gradient& gradient, int64_t count,
                                       const float* weights, float* updated,
                                       absl::Span<float* const> states, const LowWeights& low) {
  const DataType dtype = schedule_.options.update.state_precision;
  const int64_t most = MostWideStates();
  std::vector<float*> wide;
  for (size_t i = 0; i < states.size(); ++i) {
    wide.push_back(reinterpret_cast<float*>(wide_states_.get()) + static_cast<int64_t>(i) * most);
  }
  for (int64_t place = 0; place < count; place += most) {
    const int64_t here = std::min(most, count - place);
    for (size_t i = 0; i < states.size(); ++i) {
      ISOMER_RETURN_IF_ERROR(operations_.Convert(dtype, FromPlace<void>(states[i], place, dtype),
                                                 here, DataType::kFloat32, wide[i]));
    }
    LowWeights low_here = low;
    if (low.data != nullptr) low_here.data = FromPlace(low.data, place, low.dtype);
    ISOMER_RETURN_IF_ERROR(operations_.Update(
        rule, &factors, {gradient.dtype, FromPlace(gradient.data, place, gradient.dtype)}, here,
        weights + place, updated + place, wide, low_here));
    for (size_t i = 0; i < states.size(); ++i) {
      ISOMER_RETURN_IF_ERROR(operations_.Convert(DataType::kFloat32, wide[i], here, dtype,
                                                 FromPlace<void>(states[i], place, dtype)));
    }
  }
  return absl::OkStatus();
}

absl::Status Executor::RunUpdate(int32_t t) {
  const Task& task = schedule_.tasks[t];
  const UpdateFactors& factors = step_values(task.step).update;
  const size_t segments = task.segments;
  std::vector<float*> states, states_of_piece;
  for (size_t s = 0; s < segments; ++s) {
    const BufferId part = task.writes[s], trained = task.reads[s];
    const Buffer& gradient = buffer(task.reads[segments + s]);
    UpdateRule rule = rule_;
    rule.decays = decaying_ != nullptr && decaying_->contains(buffer(part).tensor);
    states.clear();
    for (size_t i = s + segments; i < task.writes.size(); i += segments) {
      states.push_back(static_cast<float*>(data(task.writes[i])));
    }
    LowWeights low;
    float* averages = nullptr;
    auto* updated = static_cast<float*>(data(part));
    const auto* weights = static_cast<const float*>(data(trained));
    if (HasMaster(buffer(part).dtype)) {
      low = {buffer(part).dtype, data(part)};
      updated = states.back();
      states.pop_back();
    } else if (const int64_t offset = LineOffset(buffer(part).box, buffer(trained).box);
               offset >= 0) {
      weights += offset;
    } else {
      ISOMER_RETURN_IF_ERROR(operations_.CopyRegion(buffer(part).box, buffer(trained).box, weights,
                                                    buffer(part).box, updated, sizeof(float)));
      weights = updated;
    }
    if (schedule_.options.update.averages) {
      averages = states.back();
      states.pop_back();
    }
    const void* gradients = data(task.reads[segments + s]);
    const auto pieces = pieces_.find({t, static_cast<int32_t>(s)});
    if (averaging_ != Averaging::kFollows) {
      // The weights are what they are.
    } else if (schedule_.options.update.state_precision != DataType::kFloat32) {
      ISOMER_RETURN_IF_ERROR(UpdateLowStates(rule, factors, {gradient.dtype, gradients},
                                             elements(part), weights, updated, states, low));
    } else if (pieces == pieces_.end()) {
      ISOMER_RETURN_IF_ERROR(operations_.Update(rule, &factors, {gradient.dtype, gradients},
                                                elements(part), weights, updated, states, low));
    } else {
      for (const UpdatePiece& piece : pieces->second) {
        const UpdateFactors scaled = Scaled(factors, step_.learning_rates[task.step], piece);
        states_of_piece.clear();
        for (float* state : states) states_of_piece.push_back(state + piece.place);
        Gradient of_piece = {gradient.dtype, FromPlace(gradients, piece.place, gradient.dtype)};
        UpdateRule formula = rule;
        if (piece.is_direction) {
          formula.optimizer = OptimizerKind::kSgd;
          of_piece = {DataType::kFloat32, states_of_piece[1]};
        }
        LowWeights low_of_piece = low;
        if (low.data != nullptr) low_of_piece.data = FromPlace(low.data, piece.place, low.dtype);
        ISOMER_RETURN_IF_ERROR(operations_.Update(formula, &scaled, of_piece, piece.count,
                                                  weights + piece.place, updated + piece.place,
                                                  states_of_piece, low_of_piece));
      }
    }
    if (averages == nullptr) continue;
    ISOMER_RETURN_IF_ERROR(SwapOrAverage(task, elements(part), weights, updated, averages, low));
  }
  return absl::OkStatus();
}

PackBytes Executor::UseScratch(int32_t t, Messages* messages) {
  const auto& devices = schedule_.tasks[t].devices;
  const auto self = std::lower_bound(devices.begin(), devices.end(), device_) - devices.begin();
  const PackBytes bytes = PackBytesOf(schedule_, schedule_.tasks[t])[self];
  messages->packed = arena_.get() + memory_->ScratchOffset(t, device_);
  messages->received = messages->packed + bytes.send;
  return bytes;
}

// Segments that are summed or broadcast as a whole lie in a row (pcg/schedule/memory/memory.h).
// Pieces travel packed (packing.h): of each member those of all segments, side by side.
absl::Status Executor::RunCollective(int32_t t, Messages* messages) {
  const Task& task = schedule_.tasks[t];
  const PackBytes pack = UseScratch(t, messages);
  char *const packed = messages->packed, *const received = messages->received;
  Communicator& communicator = *messages->communicator;
  const int64_t members = static_cast<int64_t>(task.devices.size());
  const DataType dtype = buffer(task.reads[0]).dtype;
  const int64_t count = task.bytes / BytesPerElement(dtype);
  switch (task.kind) {
    case TaskKind::kAllReduce: {
      const absl::Span<const BufferId> read = Mine(task.reads), written = Mine(task.writes);
      if (read != written) {
        ISOMER_RETURN_IF_ERROR(
            operations_.Copy(data(read[0]), buffer(read[0]).bytes(), data(written[0])));
      }
      return communicator.AllReduce(task.devices, dtype, data(written[0]),
                                    BytesOfRow(schedule_, written) / BytesPerElement(dtype));
    }
    case TaskKind::kReduce:
    case TaskKind::kBroadcast:
      return RunRooted(task, &communicator);
    case TaskKind::kReduceScatter: {
      if (pack.send > 0) ISOMER_RETURN_IF_ERROR(PackPieces(task, packed));
      const absl::Span<const BufferId> written = Mine(task.writes);
      const void* send = pack.send > 0 ? packed : data(Mine(task.reads)[0]);
      void* receive = pack.receive > 0 ? received : data(written[0]);
      ISOMER_RETURN_IF_ERROR(
          communicator.ReduceScatter(task.devices, dtype, send, receive, count / members));
      return pack.receive > 0 ? Unpack(received, written) : absl::OkStatus();
    }
    case TaskKind::kAllGather: {
      const absl::Span<const BufferId> read = Mine(task.reads);
      if (pack.send > 0) ISOMER_RETURN_IF_ERROR(Pack(read, packed));
      const void* send = pack.send > 0 ? packed : data(read[0]);
      void* receive = pack.receive > 0 ? received : data(Mine(task.writes)[0]);
      ISOMER_RETURN_IF_ERROR(
          communicator.AllGather(task.devices, send, receive, task.bytes / members));
      return pack.receive > 0 ? UnpackPieces(task, received) : absl::OkStatus();
    }
    default: {
      if (pack.send > 0) ISOMER_RETURN_IF_ERROR(PackPieces(task, packed));
      const void* send = pack.send > 0 ? packed : data(Mine(task.reads)[0]);
      void* receive = pack.receive > 0 ? received : data(Mine(task.writes)[0]);
      ISOMER_RETURN_IF_ERROR(
          communicator.AllToAll(task.devices, send, receive, task.bytes / members));
      return pack.receive > 0 ? UnpackPieces(task, received) : absl::OkStatus();
    }
  }
}

absl::Status Executor::RunRooted(const Task& task, Communicator* communicator) {
  const absl::Span<const BufferId> read = Mine(task.reads), written = Mine(task.writes);
  const bool reduce = task.kind == TaskKind::kReduce;
  const Buffer& of_root = buffer(reduce ? task.writes[0] : task.reads[0]);
  // What is at hand: the root alone writes a reduction, and alone reads a broadcast.
  const absl::Span<const BufferId> row = read.empty() ? written : read;
  const int64_t bytes = BytesOfRow(schedule_, row);
  if (!reduce) return communicator->Broadcast(task.devices, of_root.device, data(row[0]), bytes);
  void* sum = of_root.device == device_ ? data(written[0]) : nullptr;
  return communicator->Reduce(task.devices, of_root.device, of_root.dtype, data(row[0]), sum,
                              bytes / BytesPerElement(of_root.dtype));
}

absl::Span<const BufferId> Executor::Mine(absl::Span<const BufferId> ids) const {
  const auto is_mine = [this](BufferId id) { return buffer(id).device == device_; };
  const auto begin = std::find_if(ids.begin(), ids.end(), is_mine);
  const auto end = std::find_if_not(begin, ids.end(), is_mine);
  return ids.subspan(begin - ids.begin(), end - begin);
}

absl::Status Executor::Pack(absl::Span<const BufferId> ids, char* to) {
  for (BufferId id : ids) {
    ISOMER_RETURN_IF_ERROR(operations_.Copy(data(id), buffer(id).bytes(), to));
    to += buffer(id).bytes();
  }
  return absl::OkStatus();
}

absl::Status Executor::Unpack(const char* from, absl::Span<const BufferId> ids) {
  for (BufferId id : ids) {
    ISOMER_RETURN_IF_ERROR(operations_.Copy(from, buffer(id).bytes(), data(id)));
    from += buffer(id).bytes();
  }
  return absl::OkStatus();
}

// Piece m of a buffer is the box that it shares with member m's.
absl::Status Executor::PackPieces(const Task& task, char* to) {
  const absl::Span<const BufferId> read = Mine(task.reads);
  for (size_t i = 0; i < task.writes.size(); ++i) {
    const BufferId from = read[i % task.segments];
    const Box region = Intersection(box(from), box(task.writes[i]));
    const int64_t element = BytesPerElement(buffer(from).dtype);
    ISOMER_RETURN_IF_ERROR(
        operations_.CopyRegion(region, box(from), data(from), region, to, element));
    to += region.Volume() * element;
  }
  return absl::OkStatus();
}

absl::Status Executor::UnpackPieces(const Task& task, const char* from) {
  const absl::Span<const BufferId> written = Mine(task.writes);
  for (size_t i = 0; i < task.reads.size(); ++i) {
    const BufferId to = written[i % task.segments];
    const Box region = Intersection(box(task.reads[i]), box(to));
    const int64_t element = BytesPerElement(buffer(to).dtype);
    ISOMER_RETURN_IF_ERROR(
        operations_.CopyRegion(region, region, from, box(to), data(to), element));
    from += region.Volume() * element;
  }
  return absl::OkStatus();
}

// A buffer that receives is the sum of what arrives, in the order of the transfers.
absl::Status Executor::RunLocalMoves(const Task& task) {
  std::map<BufferId, std::vector<MovedPiece>> arrivals;
  for (const auto& [read, write] : task.transfers) {
    const BufferId from = task.reads[read], to = task.writes[write];
    const Box region = Intersection(box(from), box(to));
    arrivals[to].push_back({region, box(from), data(from)});
  }
  for (BufferId id : task.writes) {
    ISOMER_RETURN_IF_ERROR(
        operations_.SumPieces(arrivals[id], box(id), buffer(id).dtype, data(id)));
  }
  return absl::OkStatus();
}

absl::Status Executor::RunTransfers(int32_t t, Messages* messages) {
  const Task& task = schedule_.tasks[t];
  std::map<BufferId, std::vector<MovedPiece>> arrivals;
  UseScratch(t, messages);
  std::vector<Send>& sends = messages->sends;
  std::vector<Receive>& receives = messages->receives;
  int64_t packed_bytes = 0, received_bytes = 0;
  const std::vector<int32_t> count = ArrivalsOf(task);
  std::vector<bool> is_there(task.writes.size(), false);  // received where it goes
  sends.clear();
  receives.clear();
  for (size_t i = 0; i < task.transfers.size(); ++i) {
    const auto& [read, write] = task.transfers[i];
    const BufferId from = task.reads[read], to = task.writes[write];
    const Box region = Intersection(box(from), box(to));
    const int64_t element = BytesPerElement(buffer(from).dtype);
    const int64_t bytes = region.Volume() * element;
    const bool mine = buffer(from).device == device_;
    if (mine && buffer(to).device == device_) {
      arrivals[to].push_back({region, box(from), data(from)});
    } else if (mine && IsSentAsItLies(schedule_, task, i)) {
      const int64_t offset = LineOffset(region, box(from)) * element;
      sends.push_back({buffer(to).device, static_cast<const char*>(data(from)) + offset, bytes});
    } else if (mine) {
      char* piece = messages->packed + packed_bytes;
      ISOMER_RETURN_IF_ERROR(
          operations_.CopyRegion(region, box(from), data(from), region, piece, element));
      sends.push_back({buffer(to).device, piece, bytes});
      packed_bytes += bytes;
    } else if (buffer(to).device == device_ && IsReceivedAsItLies(schedule_, task, i, count)) {
      receives.push_back({buffer(from).device, data(to), bytes});
      is_there[write] = true;
    } else if (buffer(to).device == device_) {
      char* piece = messages->received + received_bytes;
      receives.push_back({buffer(from).device, piece, bytes});
      arrivals[to].push_back({region, region, piece});
      received_bytes += bytes;
    }
  }
  ISOMER_RETURN_IF_ERROR(messages->communicator->SendReceive(task.devices, sends, receives));
  for (size_t w = 0; w < task.writes.size(); ++w) {
    const BufferId id = task.writes[w];
    if (buffer(id).device != device_ || is_there[w]) continue;
    ISOMER_RETURN_IF_ERROR(
        operations_.SumPieces(arrivals[id], box(id), buffer(id).dtype, data(id)));
  }
  return absl::OkStatus();
}

}  // namespace isomer
