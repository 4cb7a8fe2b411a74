#include "optimizer/page/timeline_json.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "optimizer/page/shown_devices.h"
#include "optimizer/report/explanation.h"
#include "optimizer/report/task_class.h"

namespace isomer {
namespace {

struct Span {
  Picoseconds start = 0, end = 0;
  TaskClass task_class = TaskClass::kOther;
  int32_t moment = kNoMoment;
  int64_t tasks = 1;
  int32_t task = -1;        // of one
  Picoseconds longest = 0;  // of the class that it shows
};

// `short_span`: what is no longer than this together is one span, whatever its classes.
std::vector<Span> Merged(const std::vector<Span>& spans, Picoseconds gap, Picoseconds short_span) {
  std::vector<Span> merged;
  for (const Span& span : spans) {
    if (!merged.empty()) {
      Span& last = merged.back();
      const bool are_alike = last.task_class == span.task_class && last.moment == span.moment &&
                             span.start - last.end <= gap;
      const bool are_short = span.end - last.start <= short_span;
      if (are_alike || are_short) {
        if (span.longest > last.longest) {
          last.task_class = span.task_class;
          last.longest = span.longest;
        }
        if (span.moment != last.moment) last.moment = kNoMoment;
        last.end = std::max(last.end, span.end);
        last.tasks += span.tasks;
        last.task = -1;
        continue;
      }
    }
    merged.push_back(span);
  }
  return merged;
}

// Few enough spans for a row.
std::vector<Span> Shortened(std::vector<Span> spans, Picoseconds makespan) {
  if (spans.size() <= kMostSpans) return spans;
  spans = Merged(spans, makespan / 5000, 0);
  for (Picoseconds width = makespan / 4000; spans.size() > kMostSpans && width > 0; width *= 2) {
    spans = Merged(spans, width, width);
  }
  return spans;
}

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

Json SpansJson(const std::vector<Span>& spans, double ticks_per_ps, const Graph& graph,
               const Schedule& schedule, Labels* labels) {
  Json json = Json::EmptyArray();
  for (const Span& span : spans) {
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
  std::map<int32_t, std::vector<Span>> of_queue;
  const std::vector<ShownDevice> shown = ShownDevices(schedule);
  for (const ShownDevice& device : shown) {
    for (int32_t q = 0; q < kMostQueues; ++q) of_queue[QueueOfDevice(device.device, q)];
  }
  for (int32_t t = 0; t < simulation.tasks.size(); ++t) {
    const Picoseconds duration = simulation.tasks.duration(t);
    if (duration == 0) continue;
    const Task& task = schedule.tasks[t];
    for (int32_t queue : simulation.tasks.queues(t)) {
      const auto row = of_queue.find(queue);
      if (row == of_queue.end()) continue;
      const Picoseconds start = simulation.timeline.start[t];
      row->second.push_back({start, start + duration, ClassOf(task), task.moment, 1, t, duration});
    }
  }
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
  for (const ShownDevice& device : shown) {
    for (int32_t q = 0; q < kMostQueues; ++q) {
      std::vector<Span>& spans = of_queue[QueueOfDevice(device.device, q)];
      if (spans.empty()) continue;
      Json row;
      row["device"] = device.device;
      row["stage"] = device.stage;
      row["queue"] = QueueName(q);
      row["spans"] =
          SpansJson(Shortened(std::move(spans), makespan), ticks_per_ps, graph, schedule, &labels);
      json["rows"].Append(std::move(row));
    }
  }
  json["labels"] = labels.all();
  return json;
}

}  // namespace isomer
