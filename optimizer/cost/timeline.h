// When tasks run that are dealt to first-in-first-out queues: the core of the simulator.
//
// Tasks have one global order, and a queue (a device's stream, a link) serves the tasks that use it
// in that order. A task starts when what it depends on is done and each of its queues is free; it
// occupies its queues until it ends, but for links, which it may leave earlier: while a message is
// on its way, the next one can follow (LogGP's latency and gap; Alexandrov et al., SPAA'95). So the
// timeline is the longest path through a graph whose edges run forward in the global order: one
// pass over the tasks.
//
// Times are integers, in picoseconds: sums do not depend on the order of addition, so a timeline
// that is updated (block_timeline.h) equals one that is made afresh to the last bit, and shifting a
// part of one by a constant is exact. A picosecond is a millionth of what kernels are measured to;
// 2^63 of them are 106 days.
#ifndef ISOMER_OPTIMIZER_COST_TIMELINE_H_
#define ISOMER_OPTIMIZER_COST_TIMELINE_H_

#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "absl/types/span.h"

namespace isomer {

using Picoseconds = int64_t;

inline constexpr double kPicosecondsPerUs = 1e6;
inline Picoseconds PicosecondsOf(double us) { return std::llround(us * kPicosecondsPerUs); }
inline double MicrosecondsOf(Picoseconds ps) { return static_cast<double>(ps) / kPicosecondsPerUs; }

inline constexpr int32_t kNoLinks = std::numeric_limits<int32_t>::max();

// Tasks in global order, in flat arrays.
class TaskList {
 public:
  // Queues from `first_link` on are links.
  explicit TaskList(int32_t first_link = kNoLinks) : first_link_(first_link) {}

  // `deps`: earlier tasks. `queues`: numbers from 0. `beyond_links`: how much of the duration, at
  // its end, the task no longer occupies its links for.
  void Add(Picoseconds duration, absl::Span<const int32_t> queues, absl::Span<const int32_t> deps,
           Picoseconds beyond_links = 0);
  void Clear(int32_t first_link);

  int32_t size() const { return static_cast<int32_t>(duration_.size()); }
  int32_t num_queues() const { return num_queues_; }
  Picoseconds duration(int32_t task) const { return duration_[task]; }
  // For how long the task occupies one of its queues.
  Picoseconds occupied(int32_t task, int32_t queue) const {
    return duration_[task] - (queue >= first_link_ ? beyond_links_[task] : 0);
  }
  absl::Span<const int32_t> queues(int32_t task) const {
    return absl::MakeConstSpan(queues_).subspan(queue_begin_[task],
                                                queue_begin_[task + 1] - queue_begin_[task]);
  }
  absl::Span<const int32_t> deps(int32_t task) const {
    return absl::MakeConstSpan(deps_).subspan(dep_begin_[task],
                                              dep_begin_[task + 1] - dep_begin_[task]);
  }

 private:
  int32_t first_link_;
  std::vector<Picoseconds> duration_, beyond_links_;
  std::vector<int32_t> queue_begin_ = {0}, queues_, dep_begin_ = {0}, deps_;
  int32_t num_queues_ = 0;  // one more than the largest number in use
};

struct Timeline {
  std::vector<Picoseconds> start, end;  // per task
  Picoseconds makespan = 0;
};

Timeline RunTimeline(const TaskList& tasks);

// What a task waited for last.
struct Wait {
  int32_t task = -1;   // that ended, or left the queue, when this one began; -1: it began at once
  int32_t queue = -1;  // the two share this queue; -1: this one depends on the other
};
// The tasks that the makespan is the sum of, first to last, with what each waited for and the time
// until the next began. Where both a dependency and a queue were free at the same time, the
// dependency is named.
struct CriticalTask {
  int32_t task;
  Wait wait;
  Picoseconds time;
};
std::vector<CriticalTask> CriticalPath(const TaskList& tasks, const Timeline& timeline);

}  // namespace isomer

#endif  // ISOMER_OPTIMIZER_COST_TIMELINE_H_
