// Start and end times of tasks on first-in-first-out queues: the core of the simulator.
//
// Tasks have one global order, and a queue (a device's stream, a link) serves its tasks in that
// order. A task starts when its dependencies are done and each of its queues is free; it occupies
// its queues until it ends, except for links, which it may leave earlier: while a message is in
// flight, the next one can follow (LogGP's latency and gap; Alexandrov et al., SPAA'95). So the
// timeline is the longest path through a graph whose edges run forward in the global order: one
// pass over the tasks.
//
// Times are integers, in picoseconds: sums do not depend on the order of addition, so an
// incrementally updated timeline (block_timeline.h) equals a new one to the last bit, and shifting
// a part of one by a constant is exact. A picosecond is a millionth of the resolution of kernel
// measurements; 2^63 of them are 106 days.
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

  // `deps`: earlier tasks. `queues`: numbers from 0. `beyond_links`: the final part of the
  // duration, in which the task no longer occupies its links.
  void Add(Picoseconds duration, absl::Span<const int32_t> queues, absl::Span<const int32_t> deps,
           Picoseconds beyond_links = 0);
  void Clear(int32_t first_link);

  int32_t size() const { return static_cast<int32_t>(duration_.size()); }
  int32_t num_queues() const { return num_queues_; }
  Picoseconds duration(int32_t task) const { return duration_[task]; }
  // How long the task occupies this queue.
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

// The last thing that a task waited for.
struct Wait {
  int32_t task = -1;   // the task that ended or left the queue when this one began; -1: none
  int32_t queue = -1;  // the two share this queue; -1: this one depends on the other
};
// The tasks whose times add up to the makespan, first to last, each with what it waited for and the
// time until the next began. A dependency is named before a queue that became free at the same
// time.
struct CriticalTask {
  int32_t task;
  Wait wait;
  Picoseconds time;
};
std::vector<CriticalTask> CriticalPath(const TaskList& tasks, const Timeline& timeline);

}  // namespace isomer

#endif  // ISOMER_OPTIMIZER_COST_TIMELINE_H_
