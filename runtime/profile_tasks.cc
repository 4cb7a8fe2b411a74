#include "runtime/profile_tasks.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstring>
#include <limits>
#include <map>
#include <numeric>
#include <utility>

#include "pcg/support/status_macros.h"
#include "runtime/executor.h"
#include "runtime/statistics.h"

namespace isomer {
namespace {

constexpr double kNone = std::numeric_limits<double>::quiet_NaN();

// Adds tasks of one kind, with buffers of their own, to a schedule.
class SizesBuilder {
 public:
  SizesBuilder(const ProfiledTask& task, Schedule* schedule) : task_(task), schedule_(*schedule) {}

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
    for (int64_t m = 0; m < members; ++m) {
      const int32_t device = static_cast<int32_t>(m);
      const Box part = {{0, m * kLine}, {rows / members, kLine}};
      switch (task_.kind) {
        case TaskKind::kReduceScatter:
          task.reads.push_back(Add(device, whole));
          task.writes.push_back(Add(device, part));
          break;
        case TaskKind::kAllGather:
          task.reads.push_back(Add(device, part));
          task.writes.push_back(Add(device, whole));
          break;
        case TaskKind::kAllToAll:
          task.reads.push_back(Add(device, {{m * rows / members, 0}, {rows / members, columns}}));
          task.writes.push_back(Add(device, {{0, m * kLine}, {rows, kLine}}));
          break;
        case TaskKind::kSendReceive:
          task.reads.push_back(Add(device, whole));
          task.writes.push_back(Add(device, whole));
          task.transfers.push_back(
              {static_cast<int32_t>(m), static_cast<int32_t>((m + 1) % members)});
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
    if (task.kind == TaskKind::kSendReceive) return members * read;
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

// Start and end of every task of the schedule on this rank, on the clock that all share.
absl::StatusOr<std::vector<double>> RunOnce(const ProfileRank& rank, size_t num_tasks,
                                            Executor* executor) {
  const size_t before = executor->times().size();
  ISOMER_RETURN_IF_ERROR(rank.Meet());
  ISOMER_RETURN_IF_ERROR(executor->Run(Phase::kForward, Phase::kForward, 0));
  std::vector<double> times(2 * num_tasks, kNone);
  for (size_t i = before; i < executor->times().size(); ++i) {
    const TaskTime& time = executor->times()[i];
    times[2 * time.task] = time.start_us;
    times[2 * time.task + 1] = time.end_us;
  }
  return rank.Gather(times);
}

// From when the last came until the last was done; `all`: starts and ends of each rank.
double UsOfTask(const std::vector<double>& all, size_t num_tasks, size_t t) {
  double start = 0, end = 0;
  for (size_t at = 2 * t; at < all.size(); at += 2 * num_tasks) {
    if (std::isnan(all[at])) continue;
    start = std::max(start, all[at]);
    end = std::max(end, all[at + 1]);
  }
  return std::max(end - start, 0.0);
}

void ClearBuffers(const Schedule& schedule, int32_t device, Executor* executor) {
  for (size_t b = 0; b < schedule.buffers.size(); ++b) {
    const Buffer& buffer = schedule.buffers[b];
    if (buffer.device == device) {
      std::memset(executor->data(static_cast<BufferId>(b)), 0, buffer.bytes());
    }
  }
}

// A graph for the executor's messages.
Graph OneNode() {
  Graph graph;
  graph.AddInput("x", SequentialType({16}));
  return graph;
}

// From 256 bytes to 16 MiB a buffer.
std::vector<int64_t> Sizes() {
  std::vector<int64_t> elements;
  for (int64_t n = 64; n <= int64_t{4} << 20; n *= 4) elements.push_back(n);
  return elements;
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

Schedule ScheduleOfSizes(const ProfiledTask& task, int64_t num_devices,
                         const std::vector<int64_t>& elements) {
  Schedule schedule;
  schedule.options.num_devices = num_devices;
  schedule.shardings.resize(1);
  SizesBuilder builder(task, &schedule);
  for (const int64_t n : elements) {
    if (IsCommunication(task.kind)) {
      builder.AddCommunication(n);
      continue;
    }
    for (int32_t d = 0; d < num_devices; ++d) builder.AddOneDeviceTask(d, n);
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
  const Graph graph = OneNode();
  const auto num_devices = static_cast<int64_t>(rank.all.size());
  const Schedule schedule = ScheduleOfSizes(task, num_devices, Sizes());
  const MemoryPlan memory = PlanMemory(schedule);
  Executor executor(graph, schedule, memory, rank.rank(), rank.backend, rank.communicator);
  ISOMER_RETURN_IF_ERROR(executor.Prepare(static_cast<int32_t>(num_devices)));
  ClearBuffers(schedule, rank.rank(), &executor);
  executor.set_trace(true);
  const size_t num_tasks = schedule.tasks.size();
  ISOMER_RETURN_IF_ERROR(RunOnce(rank, num_tasks, &executor).status());
  std::map<int64_t, std::vector<double>> samples;  // by bytes
  double spent_us = 0;
  for (int round = 1; round <= options.most_rounds; ++round) {
    ISOMER_ASSIGN_OR_RETURN(const std::vector<double> all, RunOnce(rank, num_tasks, &executor));
    for (size_t t = 0; t < num_tasks; ++t) {
      samples[schedule.tasks[t].bytes].push_back(UsOfTask(all, num_tasks, t));
      spent_us += samples[schedule.tasks[t].bytes].back();
    }
    const bool settled = std::all_of(samples.begin(), samples.end(), [&](const auto& entry) {
      return IsSettled(entry.second, options.precision);
    });
    // One budget a size.
    const double budget_us = options.seconds_per_kernel * 1e6 * static_cast<double>(samples.size());
    if (round >= options.least_rounds && (settled || spent_us > budget_us)) break;
  }
  std::vector<SizeTime> times;
  for (const auto& [bytes, list] : samples) {
    const Spread spread = SpreadOf(list);
    times.push_back({.bytes = bytes,
                     .median_us = spread.median,
                     .lower_us = spread.lower,
                     .upper_us = spread.upper,
                     .repetitions = static_cast<int>(list.size())});
  }
  return SizeTable(std::move(times));
}

namespace {

double NowUs() {
  return std::chrono::duration<double, std::micro>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

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
  ISOMER_ASSIGN_OR_RETURN(const Schedule schedule, ScheduleOfRelus(graph, kTasks));
  const MemoryPlan memory = PlanMemory(schedule);
  Executor executor(graph, schedule, memory, 0, rank.backend, rank.communicator);
  ISOMER_RETURN_IF_ERROR(executor.Prepare(1));
  ClearBuffers(schedule, 0, &executor);
  ISOMER_ASSIGN_OR_RETURN(const Sharding sharding, InferSharding(OpKind::kRelu, {graph.type(x)}));
  ISOMER_ASSIGN_OR_RETURN(
      const std::unique_ptr<Kernel> kernel,
      rank.backend->MakeKernel(MakeKernelCall(OpKind::kRelu, sharding, {graph.type(x)}, 0, false)));
  const std::vector<const void*> reads = {executor.data(schedule.tasks[0].reads[0])};
  const std::vector<void*> writes = {executor.data(schedule.tasks[0].writes[0])};
  std::vector<double> executed, direct;
  for (int round = 0; round < kRounds; ++round) {
    double start = NowUs();
    ISOMER_RETURN_IF_ERROR(executor.Run(Phase::kForward, Phase::kForward, 0));
    executed.push_back((NowUs() - start) / kTasks);
    start = NowUs();
    for (int t = 0; t < kTasks; ++t) ISOMER_RETURN_IF_ERROR(kernel->Run(reads, writes));
    direct.push_back((NowUs() - start) / kTasks);
  }
  const double mine = std::max(SpreadOf(executed).lower - SpreadOf(direct).lower, 0.0);
  ISOMER_ASSIGN_OR_RETURN(const std::vector<double> all, rank.Gather({mine}));
  return SpreadOf(all).median;
}

}  // namespace isomer
