#include "optimizer/simulator/bucket_choice.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

#include "optimizer/cost/task_time.h"
#include "optimizer/simulator/simulator.h"
#include "pcg/schedule/lowering/lower.h"
#include "pcg/support/status_macros.h"

namespace isomer {
namespace {

// Beyond this number, small neighbouring gradients are merged.
constexpr int64_t kMostGradients = 100;
// Pareto-optimal ways kept per prefix of the buckets.
constexpr size_t kMostWays = 8;

// What one group of devices reduces of gradients.
struct Part {
  int group = 0;       // of Reduced::groups
  std::string weight;  // the last
  int64_t bytes = 0;
  int32_t segments = 0;
};

// One gradient, or merged neighbours.
struct Gradient {
  double ready_us = 0;
  int64_t bytes = 0, update_bytes = 0;
  std::vector<Part> parts;  // of other groups each

  void Add(const Gradient& next) {
    ready_us = std::max(ready_us, next.ready_us);
    bytes += next.bytes;
    update_bytes += next.update_bytes;
    for (const Part& part : next.parts) {
      const auto known = std::find_if(parts.begin(), parts.end(),
                                      [&](const Part& other) { return other.group == part.group; });
      if (known == parts.end()) {
        parts.push_back(part);
        continue;
      }
      known->weight = part.weight;
      known->bytes += part.bytes;
      known->segments += part.segments;
    }
  }
};

// What a device takes part in reducing, one after the other: groups of which it is one share its
// time to communicate, so that their buckets are chosen together.
struct Reduced {
  std::vector<Task> groups;  // each by the reduction of its first gradient
  std::vector<Gradient> gradients;
};

// The collective that distributes updated weights from those that updated them.
std::optional<TaskKind> KindOfGather(TaskKind sum) {
  if (sum == TaskKind::kReduceScatter) return TaskKind::kAllGather;
  if (sum == TaskKind::kReduce) return TaskKind::kBroadcast;
  return std::nullopt;
}

// The device groups of a step in which each gradient is reduced by itself. When gradients are ready
// is looked at as if nothing was sent for their weights: by themselves sums take longest, and what
// calls wait for would wait behind them.
class Step {
 public:
  Step(const CostModel& cost, const LoweredPlan& lowered)
      : cost_(cost), graph_(lowered.mapped.graph), schedule_(lowered.schedule) {
    for (const Schedule::HostTensor& parameter : schedule_.parameters) {
      const bool by_moment = parameter.update == UpdateMethod::kShardedGradients;
      if (by_moment || parameter.update == UpdateMethod::kShardedWeights) continue;
      names_[parameter.tensor.node] = NameOf(graph_, parameter);
    }
    for (const Task& task : schedule_.tasks) {
      if (task.kind == TaskKind::kUpdate) update_bytes_[{task.devices[0], task.node}] += task.bytes;
    }
    TaskTimes times(cost_, graph_, schedule_);
    TaskList tasks(LinkQueue(cost_.machine(), 0));
    std::vector<int32_t> queues;
    for (const Task& task : schedule_.tasks) {
      queues.clear();
      if (task.of_weights && names_.contains(task.node)) {
        tasks.Add(0, queues, task.deps);
        continue;
      }
      AppendQueues(cost_, schedule_, task, &queues);
      const TaskTime time = times.Of(task);
      tasks.Add(PicosecondsOf(time.us), queues, task.deps, PicosecondsOf(time.beyond_links_us));
    }
    timeline_ = RunTimeline(tasks);
  }

  // Where gradients of most bytes are reduced comes first. Other shards of weights have the ends of
  // the first, so each weight is there once. `together`: all groups of a device.
  std::vector<Reduced> ByDevice(bool together) const {
    const std::vector<Sums> groups = SumsOfGroups();
    std::vector<Reduced> reduced;
    std::set<NodeId> known;
    const auto is_known = [&](const Sums& group) { return known.contains(TaskOf(group).node); };
    for (const Sums& first : groups) {
      if (is_known(first)) continue;
      const int32_t device = TaskOf(first).devices[0];
      Reduced& of_device = reduced.emplace_back();
      std::map<int32_t, int> group_of;  // by task
      for (const Sums& group : groups) {
        const Task& task = TaskOf(group);
        const bool is_of_device =
            std::find(task.devices.begin(), task.devices.end(), device) != task.devices.end();
        if (is_known(group) || !(together ? is_of_device : &group == &first)) continue;
        for (int32_t t : group.tasks) group_of[t] = static_cast<int>(of_device.groups.size());
        of_device.groups.push_back(task);
      }
      for (const auto& [t, group] : group_of) {
        known.insert(schedule_.tasks[t].node);
        of_device.gradients.push_back(GradientOf(schedule_.tasks[t], group, device));
      }
    }
    return reduced;
  }

  // Time at which the device has computed all gradients.
  double ComputedUs(int32_t device) const {
    Picoseconds end = 0;
    for (size_t t = 0; t < schedule_.tasks.size(); ++t) {
      const Task& task = schedule_.tasks[t];
      const bool computes = IsOfKernel(task.kind);
      if (computes && task.devices[0] == device) end = std::max(end, timeline_.end[t]);
    }
    return MicrosecondsOf(end);
  }

  double UsOf(const Task& task) const { return TaskUs(cost_, graph_, schedule_, task); }
  double UpdateUs(int64_t bytes, int32_t device) const {
    return bytes == 0 ? 0 : cost_.ElementwiseTime(TaskKind::kUpdate, bytes, device).us;
  }

 private:
  // Of one group of devices.
  struct Sums {
    std::vector<int32_t> tasks;
    int64_t bytes = 0;
  };

  const Task& TaskOf(const Sums& group) const { return schedule_.tasks[group.tasks[0]]; }

  // That of most bytes first.
  std::vector<Sums> SumsOfGroups() const {
    // Few devices may stand for groups of more than one size.
    std::map<std::tuple<TaskKind, std::vector<int32_t>, DataType>, Sums> groups;
    for (size_t t = 0; t < schedule_.tasks.size(); ++t) {
      const Task& task = schedule_.tasks[t];
      const std::optional<Collective> collective = CollectiveOf(task.kind);
      const bool sums = collective.has_value() && TraitsOf(*collective).reduces;
      if (!names_.contains(task.node) || task.phase != Phase::kBackward || !sums) continue;
      const auto devices = schedule_.GroupOf(task);
      Sums& group = groups[{
          task.kind, {devices.begin(), devices.end()}, schedule_.buffers[task.reads[0]].dtype}];
      group.tasks.push_back(static_cast<int32_t>(t));
      group.bytes += task.bytes;
    }
    std::vector<Sums> sorted;
    for (auto& [key, group] : groups) sorted.push_back(std::move(group));
    std::stable_sort(sorted.begin(), sorted.end(),
                     [](const Sums& a, const Sums& b) { return a.bytes > b.bytes; });
    return sorted;
  }

  Gradient GradientOf(const Task& task, int group, int32_t device) const {
    Picoseconds ready = 0;
    for (int32_t dep : task.deps) ready = std::max(ready, timeline_.end[dep]);
    const auto update = update_bytes_.find({device, task.node});
    return {.ready_us = MicrosecondsOf(ready),
            .bytes = task.bytes,
            .update_bytes = update == update_bytes_.end() ? 0 : update->second,
            .parts = {{.group = group,
                       .weight = names_.at(task.node),
                       .bytes = task.bytes,
                       .segments = task.segments}}};
  }

  const CostModel& cost_;
  const Graph& graph_;
  const Schedule& schedule_;
  std::map<NodeId, std::string> names_;  // of parameters reduced once per step
  std::map<std::pair<int32_t, NodeId>, int64_t> update_bytes_;  // by device and parameter
  Timeline timeline_;                                           // without their communication
};

std::vector<Gradient> Coarsened(const std::vector<Gradient>& gradients) {
  int64_t bytes = 0;
  for (const Gradient& gradient : gradients) bytes += gradient.bytes;
  const int64_t enough = bytes / kMostGradients;
  std::vector<Gradient> coarse;
  for (const Gradient& gradient : gradients) {
    if (coarse.empty() || coarse.back().bytes >= enough || gradient.bytes >= enough) {
      coarse.push_back(gradient);
    } else {
      coarse.back().Add(gradient);
    }
  }
  return coarse;
}

// Gradients reduced together: when the last is ready, and the times to reduce them, update their
// weights and gather these.
struct Bucket {
  double ready_us = 0, sum_us = 0, update_us = 0, gather_us = 0;
};

// A bucketing of the first gradients whose last bucket starts at `first`; the previous way.
struct Way {
  double summed_us = 0;   // when the last is reduced
  double sent_us = 0;     // when the communication so far ends
  double updated_us = 0;  // when all their weights are updated, after the backward pass
  double late_us = 0;     // delay of later compute by updates
  double gather_us = 0;   // pending gathers
  double update_us = 0;   // pending update of the last bucket
  double step_us = 0;     // step time if this were all
  int first = 0, before = -1;

  bool IsNoBetterThan(const Way& other) const {
    return other.summed_us <= summed_us && other.sent_us <= sent_us &&
           other.updated_us <= updated_us && other.late_us <= late_us &&
           other.gather_us <= gather_us && other.update_us <= update_us;
  }
};

// Extends `way` by a bucket whose weights are updated and gathered after the backward pass, at
// whose end the first way starts.
Way Behind(const Way& way, const Bucket& bucket) {
  Way next;
  next.summed_us = std::max(way.summed_us, bucket.ready_us) + bucket.sum_us;
  next.sent_us = next.summed_us;
  next.updated_us = std::max(way.updated_us, next.summed_us) + bucket.update_us;
  next.gather_us = way.gather_us + bucket.gather_us;
  next.step_us = std::max(next.updated_us, next.summed_us + next.gather_us);
  return next;
}

// Extends `way` by a bucket whose weights are updated and gathered while the next is in transfer,
// the last ones after the backward pass: compute after an update is delayed by it.
Way Beside(const Way& way, const Bucket& bucket, double computed_us) {
  Way next;
  const double ready_us = bucket.ready_us + way.late_us;
  const double updated_us =
      way.update_us > 0 ? std::max(ready_us, way.summed_us) + way.update_us : ready_us;
  next.late_us = way.late_us + updated_us - ready_us;
  next.summed_us = std::max(way.sent_us, ready_us) + bucket.sum_us;
  next.sent_us =
      way.gather_us > 0 ? std::max(next.summed_us, updated_us) + way.gather_us : next.summed_us;
  next.gather_us = bucket.gather_us;
  next.update_us = bucket.update_us;
  const double end_us = std::max(computed_us + next.late_us, next.summed_us) + bucket.update_us;
  next.step_us = bucket.gather_us > 0 ? std::max(next.sent_us, end_us) + bucket.gather_us : end_us;
  return next;
}

void KeepBest(std::vector<Way>* ways) {
  std::sort(ways->begin(), ways->end(), [](const Way& a, const Way& b) {
    return std::tuple(a.step_us, a.summed_us, a.updated_us, a.first, a.before) <
           std::tuple(b.step_us, b.summed_us, b.updated_us, b.first, b.before);
  });
  std::vector<Way> kept;
  for (const Way& way : *ways) {
    const bool worse = std::any_of(kept.begin(), kept.end(),
                                   [&](const Way& other) { return way.IsNoBetterThan(other); });
    if (!worse) kept.push_back(way);
    if (kept.size() == kMostWays) break;
  }
  *ways = std::move(kept);
}

// Buckets of all ranges of neighbours: [last][first].
std::vector<std::vector<Bucket>> BucketsOf(const Step& step, const std::vector<Task>& groups,
                                           const std::vector<Gradient>& gradients) {
  std::vector<std::vector<Bucket>> buckets(gradients.size());
  for (size_t last = 0; last < gradients.size(); ++last) {
    buckets[last].resize(last + 1);
    Gradient range;
    for (size_t first = last + 1; first-- > 0;) {
      range.Add(gradients[first]);
      Bucket& bucket = buckets[last][first];
      bucket = {.ready_us = gradients[last].ready_us,
                .update_us = step.UpdateUs(range.update_bytes, groups[0].devices[0])};
      for (const Part& part : range.parts) {
        Task task = groups[part.group];
        task.bytes = part.bytes;
        task.segments = part.segments;
        bucket.sum_us += step.UsOf(task);
        const std::optional<TaskKind> gather_kind = KindOfGather(task.kind);
        if (!gather_kind.has_value()) continue;
        task.kind = *gather_kind;
        bucket.gather_us += step.UsOf(task);
      }
    }
  }
  return buckets;
}

// The last weight of each group in each of the best buckets, if gradients are computed by
// `computed_us`.
std::set<std::string> EndsOf(const std::vector<Gradient>& gradients,
                             const std::vector<std::vector<Bucket>>& buckets, double computed_us,
                             bool beside) {
  std::vector<std::vector<Way>> ways(gradients.size() + 1);
  ways[0].push_back({.updated_us = computed_us});
  for (size_t end = 1; end <= gradients.size(); ++end) {
    for (size_t first = end; first-- > 0;) {
      const Bucket& bucket = buckets[end - 1][first];
      for (size_t w = 0; w < ways[first].size(); ++w) {
        const Way& before = ways[first][w];
        Way way = beside ? Beside(before, bucket, computed_us) : Behind(before, bucket);
        way.first = static_cast<int>(first);
        way.before = static_cast<int>(w);
        ways[end].push_back(way);
      }
    }
    KeepBest(&ways[end]);
  }
  std::set<std::string> ends;
  for (size_t end = gradients.size(), w = 0; end > 0;) {
    const Way& way = ways[end][w];
    Gradient range;
    for (size_t i = way.first; i < end; ++i) range.Add(gradients[i]);
    for (const Part& part : range.parts) ends.insert(part.weight);
    end = way.first;
    w = way.before;
  }
  return ends;
}

}  // namespace

absl::StatusOr<BucketEnds> BestBucketEnds(const CostModel& cost, const Plan& plan) {
  Plan apart = plan;
  apart.update.immediate = false;
  for (int id = 0; id < plan.graph.num_nodes(); ++id) {
    const Node& node = plan.graph.node({id});
    if (node.op.kind() == OpKind::kWeight) apart.update.bucket_ends.insert(node.name);
  }
  const absl::StatusOr<LoweredPlan> lowered = LowerInSearch(cost.machine(), apart);
  if (absl::IsResourceExhausted(lowered.status())) return BucketEnds();
  ISOMER_RETURN_IF_ERROR(lowered.status());
  const Step step(cost, *lowered);
  BucketEnds ends;
  bool some_are_of_several = true;
  for (bool together : {true, false}) {
    if (!some_are_of_several) break;  // what is together is apart
    some_are_of_several = false;
    std::set<std::string> behind, beside;
    for (const Reduced& reduced : step.ByDevice(together)) {
      some_are_of_several |= reduced.groups.size() > 1;
      const std::vector<Gradient> gradients = Coarsened(reduced.gradients);
      const std::vector<std::vector<Bucket>> buckets = BucketsOf(step, reduced.groups, gradients);
      const double computed_us = step.ComputedUs(reduced.groups[0].devices[0]);
      behind.merge(EndsOf(gradients, buckets, computed_us, /*beside=*/false));
      beside.merge(EndsOf(gradients, buckets, computed_us, /*beside=*/true));
    }
    if (behind.empty()) break;
    ends.behind.insert(std::move(behind));
    ends.beside.insert(std::move(beside));
  }
  return ends;
}

}  // namespace isomer
