#include "optimizer/report/trace.h"

#include <cmath>
#include <cstdint>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "optimizer/report/explanation.h"
#include "optimizer/report/memory_over_step.h"
#include "optimizer/report/shown_devices.h"
#include "pcg/support/chrome_trace.h"
#include "pcg/support/gzip.h"

namespace isomer {
namespace {

constexpr int kMemorySamples = 1000;

class Trace {
 public:
  Trace(const LoweredPlan& lowered, const Simulation& simulation, const CostModel& cost)
      : lowered_(lowered),
        graph_(lowered.mapped.graph),
        schedule_(lowered.schedule),
        simulation_(simulation),
        cost_(cost),
        machine_(cost.machine()),
        first_link_(LinkQueue(machine_, 0)) {
    for (const ShownDevice& shown : ShownDevices(schedule_)) shown_[shown.device] = shown.stage;
  }

  std::string Run() {
    for (int32_t t = 0; t < simulation_.tasks.size(); ++t) {
      if (simulation_.tasks.duration(t) > 0) AddTask(t);
    }
    AddMemory();
    AddNames();
    // One event a line.
    return absl::StrCat("{\"displayTimeUnit\":\"ms\",\"traceEvents\":[\n",
                        absl::StrJoin(events_, ",\n"), "\n]}\n");
  }

 private:
  struct Row {
    int64_t process = 0, row = 0;
  };

  void Append(const Json& event) { events_.push_back(event.PrintCompact()); }

  bool IsShown(int32_t queue) const {
    return queue >= first_link_ || shown_.contains(queue / kMostQueues);
  }

  Row RowOf(int32_t queue) const {
    if (queue >= first_link_) return {machine_.num_devices(), queue - first_link_};
    return {queue / kMostQueues, queue % kMostQueues};
  }

  // To the nanosecond, which is what Perfetto keeps.
  static double Rounded(double us) { return std::round(us * 1000) / 1000; }

  double StartUs(int32_t task) const {
    return Rounded(MicrosecondsOf(simulation_.timeline.start[task]));
  }

  void AddTask(int32_t t) {
    bool is_shown = false;  // links alone show only what a device that is shown takes part in
    for (int32_t queue : simulation_.tasks.queues(t)) {
      is_shown |= queue < first_link_ && IsShown(queue);
    }
    if (!is_shown) return;
    const Task& task = schedule_.tasks[t];
    const Json args = ArgsOf(task);
    const std::string label = TaskLabel(graph_, task);
    for (int32_t queue : simulation_.tasks.queues(t)) {
      if (!IsShown(queue)) continue;
      queues_.insert(queue);
      const Row row = RowOf(queue);
      Json event = TraceSpan(row.process, row.row, label, StartUs(t),
                             Rounded(MicrosecondsOf(simulation_.tasks.occupied(t, queue))));
      event["cat"] = PhaseName(task.phase);
      event["args"] = args;
      Append(event);
    }
    AddArrow(t);
  }

  Json ArgsOf(const Task& task) const {
    Json args = Json::EmptyObject();
    if (task.node.value >= 0) {
      const Node& node = graph_.node(task.node);
      std::vector<std::string> operands, results;
      for (TensorRef input : node.inputs) operands.push_back(graph_.type(input).ToString());
      for (const TensorType& type : node.outputs) results.push_back(type.ToString());
      args["types"] =
          absl::StrCat(absl::StrJoin(operands, ", "), " -> ", absl::StrJoin(results, ", "));
    }
    args["bytes"] = task.bytes;
    if (task.flops > 0) args["flops"] = task.flops;
    if (task.moment != kNoMoment) args["micro_batch"] = task.moment;
    if (IsCommunication(task.kind)) {
      args["devices"] = static_cast<int64_t>(schedule_.GroupOf(task).size());
    }
    return args;
  }

  // The queue of the task that is shown, first of all a device's; -1: none.
  int32_t ShownQueue(int32_t t) const {
    for (int32_t queue : simulation_.tasks.queues(t)) {
      if (queue < first_link_ && IsShown(queue)) return queue;
    }
    return -1;
  }

  // From the dependency that ended last, if it is on another row: what the task waited for.
  void AddArrow(int32_t t) {
    int32_t last = -1;
    for (int32_t dep : simulation_.tasks.deps(t)) {
      if (simulation_.tasks.duration(dep) == 0) continue;
      if (last < 0 || simulation_.timeline.end[dep] > simulation_.timeline.end[last]) last = dep;
    }
    if (last < 0) return;
    const int32_t from = ShownQueue(last), to = ShownQueue(t);
    if (from < 0 || to < 0 || from == to) return;
    const Row begin = RowOf(from), end = RowOf(to);
    // Within the spans that it connects.
    const double left_us = StartUs(last) + MicrosecondsOf(simulation_.tasks.duration(last)) * 0.999;
    Append(TraceArrowStart(begin.process, begin.row, arrows_, "waits", Rounded(left_us)));
    Append(TraceArrowEnd(end.process, end.row, arrows_, "waits", StartUs(t)));
    ++arrows_;
  }

  void AddMemory() {
    std::vector<int32_t> devices;
    for (const auto& [device, stage] : shown_) devices.push_back(device);
    const MemoryOverStep memory = MemoryOf(cost_, lowered_, simulation_, devices, kMemorySamples);
    const double bin_us = MicrosecondsOf(simulation_.timeline.makespan) / kMemorySamples;
    for (const auto& [device, use] : memory.devices) {
      for (int b = 0; b < kMemorySamples; ++b) {
        if (!use.bins[b].is_known) continue;
        Json values = Json::EmptyObject();
        for (int c = 0; c < kNumMemoryCategories; ++c) {
          if (!memory.is_used[c]) continue;
          values[MemoryCategoryName(static_cast<MemoryCategory>(c))] =
              use.bins[b].most.categories[c];
        }
        Append(TraceCounter(device, "memory (bytes)", Rounded(b * bin_us), std::move(values)));
      }
    }
  }

  void AddNames() {
    const std::vector<StageDevices> stages = StageDevicesOf(schedule_);
    for (int32_t queue : queues_) {
      const Row row = RowOf(queue);
      Append(TraceRowName(row.process, row.row,
                          queue >= first_link_
                              ? machine_.LinkName(queue - first_link_)
                              : std::string(QueueName(static_cast<int32_t>(row.row)))));
    }
    for (const auto& [device, stage] : shown_) {
      std::string name = absl::StrCat("device ", device);
      if (stages.size() > 1) {
        absl::StrAppend(&name, " (stage ", stage, ": ", stages[stage].first, " to ",
                        stages[stage].last, ")");
      }
      Append(TraceProcessName(device, name));
      Append(TraceProcessPlace(device, device));
    }
    Append(TraceProcessName(machine_.num_devices(), "links"));
    Append(TraceProcessPlace(machine_.num_devices(), machine_.num_devices()));
  }

  const LoweredPlan& lowered_;
  const Graph& graph_;
  const Schedule& schedule_;
  const Simulation& simulation_;
  const CostModel& cost_;
  const Machine& machine_;
  const int32_t first_link_;
  std::map<int32_t, int> shown_;  // devices, with their stages
  std::set<int32_t> queues_;      // that have spans
  std::vector<std::string> events_;
  int64_t arrows_ = 0;
};

}  // namespace

absl::Status WriteTrace(const std::string& path, const LoweredPlan& lowered,
                        const Simulation& simulation, const CostModel& cost) {
  return WriteTextOrGzip(path, Trace(lowered, simulation, cost).Run());
}

}  // namespace isomer
