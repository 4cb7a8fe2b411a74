#include "optimizer/report/timeline_rows.h"

#include <algorithm>
#include <map>
#include <utility>

namespace isomer {
namespace {

// `short_span`: what is no longer than this together is one span, whatever its classes.
std::vector<TimelineSpan> Merged(const std::vector<TimelineSpan>& spans, Picoseconds gap,
                                 Picoseconds short_span) {
  std::vector<TimelineSpan> merged;
  for (const TimelineSpan& span : spans) {
    if (!merged.empty()) {
      TimelineSpan& last = merged.back();
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
std::vector<TimelineSpan> Shortened(std::vector<TimelineSpan> spans, Picoseconds makespan,
                                    size_t most_spans) {
  if (spans.size() <= most_spans) return spans;
  spans = Merged(spans, makespan / 5000, 0);
  for (Picoseconds width = makespan / 4000; spans.size() > most_spans && width > 0; width *= 2) {
    spans = Merged(spans, width, width);
  }
  return spans;
}

}  // namespace

std::vector<TimelineRow> TimelineRows(const Schedule& schedule, const Simulation& simulation,
                                      size_t most_spans) {
  std::map<int32_t, std::vector<TimelineSpan>> of_queue;
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
  std::vector<TimelineRow> rows;
  for (const ShownDevice& device : shown) {
    for (int32_t q = 0; q < kMostQueues; ++q) {
      std::vector<TimelineSpan>& spans = of_queue[QueueOfDevice(device.device, q)];
      if (spans.empty()) continue;
      rows.push_back({device, q, Shortened(std::move(spans), makespan, most_spans)});
    }
  }
  return rows;
}

}  // namespace isomer
