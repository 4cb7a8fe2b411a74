#include "optimizer/cost/timeline.h"

#include <algorithm>

namespace isomer {

void TaskList::Add(Picoseconds duration, absl::Span<const int32_t> queues,
                   absl::Span<const int32_t> deps, Picoseconds beyond_links) {
  duration_.push_back(duration);
  beyond_links_.push_back(beyond_links);
  for (int32_t queue : queues) {
    queues_.push_back(queue);
    num_queues_ = std::max(num_queues_, queue + 1);
  }
  queue_begin_.push_back(static_cast<int32_t>(queues_.size()));
  deps_.insert(deps_.end(), deps.begin(), deps.end());
  dep_begin_.push_back(static_cast<int32_t>(deps_.size()));
}

void TaskList::Clear(int32_t first_link) {
  first_link_ = first_link;
  duration_.clear();
  beyond_links_.clear();
  queues_.clear();
  deps_.clear();
  queue_begin_.assign(1, 0);
  dep_begin_.assign(1, 0);
  num_queues_ = 0;
}

Timeline RunTimeline(const TaskList& tasks) {
  const int32_t n = tasks.size();
  Timeline timeline;
  timeline.start.resize(n);
  timeline.end.resize(n);
  std::vector<Picoseconds> free(tasks.num_queues(), 0);
  for (int32_t t = 0; t < n; ++t) {
    Picoseconds start = 0;
    for (int32_t dep : tasks.deps(t)) start = std::max(start, timeline.end[dep]);
    for (int32_t queue : tasks.queues(t)) start = std::max(start, free[queue]);
    const Picoseconds end = start + tasks.duration(t);
    for (int32_t queue : tasks.queues(t)) free[queue] = start + tasks.occupied(t, queue);
    timeline.start[t] = start;
    timeline.end[t] = end;
    timeline.makespan = std::max(timeline.makespan, end);
  }
  return timeline;
}

std::vector<CriticalTask> CriticalPath(const TaskList& tasks, const Timeline& timeline) {
  const int32_t n = tasks.size();
  std::vector<Wait> waits(n);
  std::vector<int32_t> last(tasks.num_queues(), -1);
  int32_t at = -1;
  for (int32_t t = 0; t < n; ++t) {
    const Picoseconds start = timeline.start[t];
    for (int32_t queue : tasks.queues(t)) {
      const int32_t before = last[queue];
      if (before >= 0 && start > 0 &&
          timeline.start[before] + tasks.occupied(before, queue) == start) {
        waits[t] = {before, queue};
      }
      last[queue] = t;
    }
    for (int32_t dep : tasks.deps(t)) {
      if (start > 0 && timeline.end[dep] == start) waits[t] = {dep, -1};
    }
    if (at < 0 && timeline.end[t] == timeline.makespan) at = t;
  }
  std::vector<CriticalTask> path;
  Picoseconds next = timeline.makespan;
  for (; at >= 0; at = waits[at].task) {
    path.push_back({at, waits[at], next - timeline.start[at]});
    next = timeline.start[at];
  }
  std::reverse(path.begin(), path.end());
  return path;
}

}  // namespace isomer
