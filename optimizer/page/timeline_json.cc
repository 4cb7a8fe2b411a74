#include "optimizer/page/timeline_json.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "optimizer/report/explanation.h"
#include "optimizer/report/task_class.h"
#include "optimizer/report/timeline_rows.h"

namespace isomer {
namespace {

// Labels of tasks, each once.
class Labels {
 public:
  int64_t NumberOf(std::string label) {
    const auto [it, added] =
        numbers_.try_emplace(std::move(label), static_cast<int64_t>(numbers_.size()));
    if (added) labels_.push_back(it->first);
    return it->second;
  }
  const std::vector<std::string>& all() const { return labels_; }

 private:
  std::map<std::string, int64_t> numbers_;
  std::vector<std::string> labels_;
};

Json SpansJson(const std::vector<TimelineSpan>& spans, double ticks_per_ps, const Graph& graph,
               const Schedule& schedule, Labels* labels) {
  Json json = Json::EmptyArray();
  for (const TimelineSpan& span : spans) {
    const auto start = std::llround(static_cast<double>(span.start) * ticks_per_ps);
    const auto end = std::llround(static_cast<double>(span.end) * ticks_per_ps);
    json.Append(int64_t{start});
    json.Append(std::max<int64_t>(1, end - start));
    json.Append(static_cast<int64_t>(span.task_class));
    json.Append(span.moment);
    json.Append(span.tasks);
    // Only what is wide enough to be pointed at has a name.
    const bool is_named = span.task >= 0 && end - start >= kTicks / 3000;
    json.Append(is_named ? labels->NumberOf(TaskLabel(graph, schedule.tasks[span.task])) : -1);
  }
  return json;
}

}  // namespace

Json TimelineJson(const Graph& graph, const Schedule& schedule, const Simulation& simulation) {
  const Picoseconds makespan = std::max<Picoseconds>(1, simulation.timeline.makespan);
  const double ticks_per_ps = static_cast<double>(kTicks) / static_cast<double>(makespan);
  Labels labels;
  Json json;
  json["span_us"] = MicrosecondsOf(makespan);
  json["ticks"] = kTicks;
  json["steps"] = schedule.num_steps();
  json["micro_batches"] = simulation.micro_batches;
  json["simulated_micro_batches"] = simulation.simulated_micro_batches;
  for (int c = 0; c < kNumTaskClasses; ++c) {
    json["classes"].Append(TaskClassName(static_cast<TaskClass>(c)));
  }
  json["labels"] = Json::EmptyArray();
  json["rows"] = Json::EmptyArray();
  for (const TimelineRow& row : TimelineRows(schedule, simulation, kMostSpans)) {
    Json one;
    one["device"] = row.of.device;
    one["stage"] = row.of.stage;
    one["queue"] = QueueName(row.queue);
    one["spans"] = SpansJson(row.spans, ticks_per_ps, graph, schedule, &labels);
    json["rows"].Append(std::move(one));
  }
  json["labels"] = labels.all();
  return json;
}

}  // namespace isomer
