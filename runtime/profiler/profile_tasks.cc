#include "runtime/profiler/profile_tasks.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstring>
#include <limits>
#include <memory>
#include <numeric>
#include <utility>

#include "pcg/schedule/lowering/lower.h"
#include "pcg/support/status_macros.h"
#include "runtime/device/caches.h"
#include "runtime/device/statistics.h"
#include "runtime/execution/executor.h"
#include "runtime/profiler/device_clock.h"
#include "runtime/profiler/kernel_timer.h"

namespace isomer {
namespace {

constexpr double kNone = std::numeric_limits<double>::quiet_NaN();

// Adds tasks of one kind, with buffers of their own, to a schedule.
class SizeBuilder {
 public:
  SizeBuilder(const ProfiledTask& task, Schedule* schedule) : task_(task), schedule_(*schedule) {}

  // `elements` a buffer; of a collective, of the larger of operand and result.
  void AddOneDeviceTask(int32_t device, int64_t elements) {
    const bool update = task_.kind == TaskKind::kUpdate, local = task_.kind == TaskKind::kLocal;
    // A move cuts lines of half the columns.
    const int64_t columns = std::min<int64_t>(elements, 64), rows = elements / columns;
    const BufferId target = Add(device, {{0, 0}, {rows, local ? columns / 2 : columns}});
    Task task = NewTask({device});
    task.writes = {target};
    if (update) task.reads = {target};
    if (task_.kind != TaskKind::kFill) {
      task.reads.push_back(Add(device, {{0, 0}, {rows, columns}}));
    }
    if (local) {
      task.writes.push_back(Add(device, {{0, columns / 2}, {rows, columns - columns / 2}}));
      task.transfers = {{0, 0}, {0, 1}};
    }
    for (const auto* list : {&task.reads, &task.writes}) {
      for (BufferId id : *list) task.bytes += schedule_.buffers[id].bytes();
    }
    schedule_.tasks.push_back(std::move(task));
  }

  void AddCommunication(int64_t elements) {
    const int64_t members = task_.group_size;
    std::vector<int32_t> devices(members);
    std::iota(devices.begin(), devices.end(), 0);
    Task task = NewTask(std::move(devices));
    constexpr int64_t kLine = 128;
    const int64_t columns = members * kLine;
    const int64_t rows = std::max<int64_t>(elements / columns, 1) * members;  // of all members
    const Box whole = {{0, 0}, {rows / members, columns}};
    // Scattered and gathered as they lie: what is packed is added where it is (packing.h).
    const int64_t share = rows / members * kLine;
    const Box line = {{0}, {share * members}};
    for (int64_t m = 0; m < members; ++m) {
      const int32_t device = static_cast<int32_t>(m);
      const Box part = {{0, m * kLine}, {rows / members, kLine}};
      const Box of_line = {{m * share}, {share}};
      switch (task_.kind) {
        case TaskKind::kReduceScatter:
          task.reads.push_back(Add(device, line));
          task.writes.push_back(Add(device, of_line));
          break;
        case TaskKind::kAllGather:
          task.reads.push_back(Add(device, of_line));
          task.writes.push_back(Add(device, line));
          break;
        case TaskKind::kAllToAll:
          task.reads.push_back(Add(device, {{m * rows / members, 0}, {rows / members, columns}}));
          task.writes.push_back(Add(device, {{0, m * kLine}, {rows, kLine}}));
          break;
        case TaskKind::kSendReceive:  // As reshardings are: pieces of others beside one's own.
          task.reads.push_back(Add(device, part));
          task.writes.push_back(Add(device, whole));
          for (int32_t from = 0; from < members; ++from) {
            task.transfers.push_back({from, static_cast<int32_t>(m)});
          }
          break;
        default:
          task.reads.push_back(Add(device, whole));
          task.writes.push_back(task.reads.back());
      }
    }
    task.bytes = CountedBytes(task, members);
    schedule_.tasks.push_back(std::move(task));
  }

 private:
  Task NewTask(std::vector<int32_t> devices) const {
    return {.kind = task_.kind,
            .phase = Phase::kForward,
            .node = NodeId{0},
            .devices = std::move(devices)};
  }

  // What Task::bytes says of a communication.
  int64_t CountedBytes(const Task& task, int64_t members) const {
    const int64_t read = schedule_.buffers[task.reads[0]].bytes();
    if (task.kind == TaskKind::kSendReceive) return members * (members - 1) * read;
    return std::max(read, task.kind == TaskKind::kAllGather
                              ? schedule_.buffers[task.writes[0]].bytes()
                              : int64_t{0});
  }

  // It lives through all of the schedule, so that no two share memory.
  BufferId Add(int32_t device, Box box) {
    schedule_.buffers.push_back({.role = BufferRole::kParameter,
                                 .tensor = {NodeId{0}, 0},
                                 .device = device,
                                 .box = std::move(box)});
    return static_cast<BufferId>(schedule_.buffers.size()) - 1;
  }

  const ProfiledTask& task_;
  Schedule& schedule_;
};

// A schedule of one size, ready to run.
class SizeRunner {
 public:
  SizeRunner(const ProfiledTask& task, int64_t elements, const ProfileRank& rank)
      : rank_(rank),
        schedule_(ScheduleOfSize(task, static_cast<int64_t>(rank.all.size()), elements)),
        memory_(PlanMemory(schedule_)),
        executor_(graph_, schedule_, rank.rank(), rank.backend, rank.communicator) {
    graph_.AddInput("x", SequentialType({1}));  // for the executor's messages
  }
  absl::Status Prepare();
  int64_t bytes() const { return schedule_.tasks[0].bytes; }

  // Brings its buffers, cleared, to where the task is to find them.
  absl::Status SetCaches(CacheLevel level, CacheSweeper* sweeper);
  absl::Status RunOnce();
  // Of the runs in which nothing disturbed any rank; where there are hardly any, of all.
  std::vector<double> Samples() const { return undisturbed_.size() < 5 ? all_ : undisturbed_; }
  double spent_us() const { return spent_us_; }

 private:
  const ProfileRank& rank_;
  Graph graph_;
  const Schedule schedule_;
  const MemoryPlan memory_;
  Executor executor_;
  std::vector<double> undisturbed_, all_;
  double spent_us_ = 0;
};

absl::Status ClearBuffers(const Schedule& schedule, int32_t device, Executor* executor) {
  for (size_t b = 0; b < schedule.buffers.size(); ++b) {
    const Buffer& buffer = schedule.buffers[b];
    if (buffer.device == device) {
      ISOMER_RETURN_IF_ERROR(executor->Set(static_cast<BufferId>(b), [&](void* contents) {
        std::memset(contents, 0, buffer.bytes());
        return absl::OkStatus();
      }));
    }
  }
  return absl::OkStatus();
}

// From 256 bytes to 32 MiB a buffer, more than a bucket of gradients: rates beyond are those of the
// last two, which memory bounds and no longer a cache.
std::vector<int64_t> Sizes() {
  std::vector<int64_t> elements;
  for (int64_t n = 64; n <= int64_t{4} << 20; n *= 4) elements.push_back(n);
  elements.push_back(int64_t{8} << 20);
  return elements;
}

double NowUs() {
  return std::chrono::duration<double, std::micro>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

absl::Status SizeRunner::Prepare() {
  ISOMER_RETURN_IF_ERROR(executor_.MakeKernels());
  ISOMER_RETURN_IF_ERROR(executor_.Prepare(memory_));
  ISOMER_RETURN_IF_ERROR(ClearBuffers(schedule_, rank_.rank(), &executor_));
  executor_.set_trace(true, /*holds=*/true);
  return absl::OkStatus();
}

absl::Status SizeRunner::SetCaches(CacheLevel level, CacheSweeper* sweeper) {
  ISOMER_RETURN_IF_ERROR(ClearBuffers(schedule_, rank_.rank(), &executor_));
  // A GPU finds what it was just given.
  if (!rank_.backend->operations().shares_host_memory()) return absl::OkStatus();
  for (size_t b = 0; level == CacheLevel::kMemory && b < schedule_.buffers.size(); ++b) {
    const Buffer& buffer = schedule_.buffers[b];
    if (buffer.device != rank_.rank()) continue;
    ISOMER_RETURN_IF_ERROR(executor_.Get(static_cast<BufferId>(b), [&](const void* contents) {
      sweeper->Evict(static_cast<const char*>(contents), buffer.bytes());
      return absl::OkStatus();
    }));
  }
  if (level == CacheLevel::kLast) sweeper->SweepNear();
  return absl::OkStatus();
}

absl::Status SizeRunner::RunOnce() {
  ISOMER_RETURN_IF_ERROR(rank_.Meet());
  const size_t before = executor_.times().size();
  const double wall = NowUs(), computed = ThreadUs();
  ISOMER_RETURN_IF_ERROR(executor_.Run(Phase::kForward, Phase::kForward));
  // Ranks that wait look again and again: one that computed less than passed was put aside for
  // another process (or slept, where there are more ranks than cores: then every run is such).
  const double passed = NowUs() - wall, idle = passed - (ThreadUs() - computed);
  const bool disturbed = idle > std::max(5.0, 0.05 * passed);
  std::vector<double> mine = {kNone, kNone, disturbed ? 1.0 : 0.0};
  if (executor_.times().size() > before) {
    mine[0] = executor_.times().back().start_us;
    mine[1] = executor_.times().back().end_us;
  }
  ISOMER_ASSIGN_OR_RETURN(const std::vector<double> all, rank_.Gather(mine));
  const bool together = IsCommunication(schedule_.tasks[0].kind);
  double start = 0, end = 0, disturbances = 0;
  std::vector<double> times;
  for (size_t r = 0; r < all.size(); r += 3) {
    disturbances += all[r + 2];
    if (std::isnan(all[r])) continue;
    start = std::max(start, all[r]);
    end = std::max(end, all[r + 1]);
    times.push_back(all[r + 1] - all[r]);
  }
  if (together && rank_.communicator->is_asynchronous()) {
    // Devices have clocks of their own: for the last to come it is the communication alone.
    times = {*std::min_element(times.begin(), times.end())};
  } else if (together) {
    times = {std::max(end - start, 0.0)};
  }
  for (const double us : times) {
    all_.push_back(us);
    if (disturbances == 0) undisturbed_.push_back(us);
    spent_us_ += us;
  }
  return absl::OkStatus();
}

}  // namespace

std::string ProfiledTask::Key(absl::string_view communicator) const {
  if (!IsCommunication(kind)) return TaskKindName(kind);
  return CollectiveKey(TaskKindName(kind), communicator, group_size);
}

std::vector<ProfiledTask> TasksToProfile(int64_t num_devices) {
  std::vector<ProfiledTask> tasks;
  for (const TaskKind kind :
       {TaskKind::kFill, TaskKind::kAccumulate, TaskKind::kLocal, TaskKind::kUpdate}) {
    tasks.push_back({kind});
  }
  for (int64_t members = 2; members <= num_devices; ++members) {
    for (const TaskKind kind :
         {TaskKind::kAllReduce, TaskKind::kReduceScatter, TaskKind::kAllGather, TaskKind::kAllToAll,
          TaskKind::kSendReceive}) {
      tasks.push_back({kind, members});
    }
  }
  return tasks;
}

Schedule ScheduleOfSize(const ProfiledTask& task, int64_t num_devices, int64_t elements) {
  Schedule schedule;
  schedule.options.num_devices = num_devices;
  schedule.shardings.resize(1);
  SizeBuilder builder(task, &schedule);
  if (IsCommunication(task.kind)) {
    builder.AddCommunication(elements);
  } else {
    for (int32_t d = 0; d < num_devices; ++d) builder.AddOneDeviceTask(d, elements);
  }
  schedule.programs.resize(num_devices);
  for (size_t t = 0; t < schedule.tasks.size(); ++t) {
    for (const int32_t d : schedule.tasks[t].devices) {
      schedule.programs[d].push_back(static_cast<int32_t>(t));
    }
  }
  return schedule;
}

absl::StatusOr<SizeTable> MeasureTask(const ProfileRank& rank, const ProfiledTask& task,
                                      const ProfilerOptions& options) {
  std::vector<std::unique_ptr<SizeRunner>> runners;
  std::vector<SizeRunner*> left;
  for (const int64_t elements : Sizes()) {
    runners.push_back(std::make_unique<SizeRunner>(task, elements, rank));
    ISOMER_RETURN_IF_ERROR(runners.back()->Prepare());
    left.push_back(runners.back().get());
  }
  const bool updates = task.kind == TaskKind::kUpdate && options.state != CacheState::kHot;
  CacheSweeper sweeper(CachesOfDevice(static_cast<int64_t>(rank.all.size())));
  for (int round = 1; round <= options.most_rounds && !left.empty(); ++round) {
    for (SizeRunner* runner : left) {
      // What is sent, moved or summed has just been computed; parameters have not.
      ISOMER_RETURN_IF_ERROR(runner->SetCaches(updates ? task.found : CacheLevel::kNear, &sweeper));
      ISOMER_RETURN_IF_ERROR(runner->RunOnce());
    }
    if (round < options.least_rounds) continue;
    std::erase_if(left, [&](const SizeRunner* runner) {
      return IsSettled(runner->Samples(), options.precision) ||
             runner->spent_us() > options.seconds_per_kernel * 1e6;
    });
  }
  std::vector<SizeTime> times;
  for (const auto& runner : runners) {
    const std::vector<double> samples = runner->Samples();
    const Spread spread = SpreadOf(samples);
    times.push_back({.bytes = runner->bytes(),
                     .median_us = spread.median,
                     .lower_us = spread.lower,
                     .upper_us = spread.upper,
                     .repetitions = static_cast<int>(samples.size())});
  }
  return SizeTable(std::move(times));
}

namespace {

// y = relu(x), x of 16 numbers, so many times.
absl::StatusOr<Schedule> ScheduleOfRelus(const Graph& graph, int count) {
  ScheduleOptions options;
  options.training = false;
  ISOMER_ASSIGN_OR_RETURN(Schedule schedule, LowerGraph(graph, SequentialViews(graph), options));
  const auto relu = std::find_if(schedule.tasks.begin(), schedule.tasks.end(),
                                 [](const Task& task) { return task.kind == TaskKind::kCompute; });
  schedule.tasks.assign(count, Task(*relu));
  schedule.programs[0].resize(count);
  std::iota(schedule.programs[0].begin(), schedule.programs[0].end(), 0);
  return schedule;
}

}  // namespace

absl::StatusOr<double> MeasureTaskOverheadUs(const ProfileRank& rank) {
  constexpr int kTasks = 200, kRounds = 41;
  Graph graph;
  const TensorRef x = graph.AddInput("x", SequentialType({16}));
  ISOMER_ASSIGN_OR_RETURN(const TensorRef y, graph.AddOp(OpKind::kRelu, {x}));
  graph.AddOutput("y", y);
  ISOMER_ASSIGN_OR_RETURN(Schedule schedule, ScheduleOfRelus(graph, kTasks));
  ISOMER_ASSIGN_OR_RETURN(const std::unique_ptr<DeviceClock> clock,
                          DeviceClock::Make(rank.backend));
  // A GPU replays what it recorded.
  const Execution execution = {.kind = clock == nullptr ? ExecutionKind::kInline
                                                        : ExecutionKind::kThreaded};
  Executor executor(graph, schedule, 0, rank.backend, rank.communicator, execution);
  ISOMER_RETURN_IF_ERROR(executor.MakeKernels());
  for (const auto& [task, workspace] : executor.Workspaces()) {
    schedule.tasks[task].workspace_bytes = workspace;
  }
  const MemoryPlan memory = PlanMemory(schedule, execution.num_queues());
  ISOMER_RETURN_IF_ERROR(executor.Prepare(memory));
  ISOMER_RETURN_IF_ERROR(ClearBuffers(schedule, 0, &executor));
  ISOMER_ASSIGN_OR_RETURN(const Sharding sharding, InferSharding(OpKind::kRelu, {graph.type(x)}));
  ISOMER_ASSIGN_OR_RETURN(
      const std::unique_ptr<Kernel> kernel,
      rank.backend->MakeKernel(MakeKernelCall(OpKind::kRelu, sharding, {graph.type(x)}, 0, false)));
  ISOMER_ASSIGN_OR_RETURN(const Backend::Memory workspace,
                          rank.backend->Allocate(kernel->workspace_bytes()));
  const int64_t bytes = schedule.buffers[schedule.tasks[0].reads[0]].bytes();
  ISOMER_ASSIGN_OR_RETURN(const Backend::Memory own, rank.backend->Allocate(2 * bytes));
  ISOMER_RETURN_IF_ERROR(rank.backend->operations().Fill(0, graph.type(x).NumElements(),
                                                         graph.type(x).dtype, own.get()));
  const std::vector<const void*> reads = {own.get()};
  const std::vector<void*> writes = {own.get() + bytes};
  std::vector<double> executed, direct;
  for (int round = 0; round < kRounds; ++round) {
    double start = NowUs();
    ISOMER_RETURN_IF_ERROR(executor.Run(Phase::kForward, Phase::kForward));
    executed.push_back((NowUs() - start) / kTasks);
    const auto run = [&] { return kernel->Run(reads, writes, workspace.get()); };
    if (clock != nullptr) {
      ISOMER_ASSIGN_OR_RETURN(direct.emplace_back(), clock->TimeUs(run));
      continue;
    }
    start = NowUs();
    for (int t = 0; t < kTasks; ++t) ISOMER_RETURN_IF_ERROR(run());
    direct.push_back((NowUs() - start) / kTasks);
  }
  const double mine = std::max(SpreadOf(executed).lower - SpreadOf(direct).lower, 0.0);
  ISOMER_ASSIGN_OR_RETURN(const std::vector<double> all, rank.Gather({mine}));
  return SpreadOf(all).median;
}

}  // namespace isomer
