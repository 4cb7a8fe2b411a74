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

// One gradient, or merged neighbours, that a group of devices reduces.
struct Gradient {
  std::string weight;  // the last of the merged ones
  double ready_us = 0;
  int64_t bytes = 0, update_bytes = 0;
  int32_t segments = 0;
};

struct Group {
  Task sum;  // reduction of the first gradient
  std::vector<Gradient> gradients;
  int64_t bytes = 0;
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

  // The group with the most bytes first.
  std::vector<Group> Groups() const {
    std::map<std::pair<int32_t, NodeId>, int64_t> update_bytes;  // by device and parameter
    for (const Task& task : schedule_.tasks) {
      if (task.kind != TaskKind::kUpdate) continue;
      update_bytes[{task.devices[0], task.node}] += task.bytes;
    }
    std::map<std::tuple<TaskKind, std::vector<int32_t>, DataType>, Group> groups;
    for (size_t t = 0; t < schedule_.tasks.size(); ++t) {
      const Task& task = schedule_.tasks[t];
      const auto name = names_.find(task.node);
      const std::optional<Collective> collective = CollectiveOf(task.kind);
      const bool sums = collective.has_value() && TraitsOf(*collective).reduces;
      if (name == names_.end() || task.phase != Phase::kBackward || !sums) continue;
      Picoseconds ready = 0;
      for (int32_t dep : task.deps) ready = std::max(ready, timeline_.end[dep]);
      Group& group = groups[{task.kind,
                             {task.devices.begin(), task.devices.end()},
                             schedule_.buffers[task.reads[0]].dtype}];
      if (group.gradients.empty()) group.sum = task;
      const auto update = update_bytes.find({task.devices[0], task.node});
      group.gradients.push_back({.weight = name->second,
                                 .ready_us = MicrosecondsOf(ready),
                                 .bytes = task.bytes,
                                 .update_bytes = update == update_bytes.end() ? 0 : update->second,
                                 .segments = task.segments});
      group.bytes += task.bytes;
    }
    std::vector<Group> sorted;
    for (auto& [key, group] : groups) sorted.push_back(std::move(group));
    std::stable_sort(sorted.begin(), sorted.end(),
                     [](const Group& a, const Group& b) { return a.bytes > b.bytes; });
    return sorted;
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
  const CostModel& cost_;
  const Graph& graph_;
  const Schedule& schedule_;
  std::map<NodeId, std::string> names_;  // of parameters reduced once per step
  Timeline timeline_;                    // without their communication
};

std::vector<Gradient> Coarsened(const Group& group) {
  const int64_t enough = group.bytes / kMostGradients;
  std::vector<Gradient> coarse;
  for (const Gradient& gradient : group.gradients) {
    if (coarse.empty() || coarse.back().bytes >= enough || gradient.bytes >= enough) {
      coarse.push_back(gradient);
      continue;
    }
    Gradient& last = coarse.back();
    last.weight = gradient.weight;
    last.ready_us = std::max(last.ready_us, gradient.ready_us);
    last.bytes += gradient.bytes;
    last.update_bytes += gradient.update_bytes;
    last.segments += gradient.segments;
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
std::vector<std::vector<Bucket>> BucketsOf(const Step& step, const Group& group,
                                           const std::vector<Gradient>& gradients) {
  const std::optional<TaskKind> gather_kind = KindOfGather(group.sum.kind);
  std::vector<std::vector<Bucket>> buckets(gradients.size());
  Task task = group.sum;
  for (size_t last = 0; last < gradients.size(); ++last) {
    buckets[last].resize(last + 1);
    task.bytes = 0;
    task.segments = 0;
    int64_t update_bytes = 0;
    for (size_t first = last + 1; first-- > 0;) {
      task.bytes += gradients[first].bytes;
      task.segments += gradients[first].segments;
      update_bytes += gradients[first].update_bytes;
      task.kind = group.sum.kind;
      Bucket& bucket = buckets[last][first];
      bucket = {.ready_us = gradients[last].ready_us,
                .sum_us = step.UsOf(task),
                .update_us = step.UpdateUs(update_bytes, task.devices[0])};
      if (!gather_kind.has_value()) continue;
      task.kind = *gather_kind;
      bucket.gather_us = step.UsOf(task);
    }
  }
  return buckets;
}

// The last weight of each of the best buckets, if gradients are computed by `computed_us`.
std::vector<std::string> EndsOf(const std::vector<Gradient>& gradients,
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
  std::vector<std::string> ends;
  for (size_t end = gradients.size(), w = 0; end > 0;) {
    ends.push_back(gradients[end - 1].weight);
    const Way& way = ways[end][w];
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
  const absl::StatusOr<LoweredPlan> lowered = LowerForSimulation(cost.machine(), apart);
  if (absl::IsResourceExhausted(lowered.status())) return BucketEnds();
  ISOMER_RETURN_IF_ERROR(lowered.status());
  const Step step(cost, *lowered);
  BucketEnds ends;
  std::set<std::string> known;
  for (const Group& group : step.Groups()) {
    // Other shards of weights have the ends of the first.
    const bool is_known = known.contains(group.gradients[0].weight);
    for (const Gradient& gradient : group.gradients) known.insert(gradient.weight);
    if (is_known) continue;
    const std::vector<Gradient> gradients = Coarsened(group);
    const std::vector<std::vector<Bucket>> buckets = BucketsOf(step, group, gradients);
    const double computed_us = step.ComputedUs(group.sum.devices[0]);
    for (bool beside : {false, true}) {
      const std::vector<std::string> of_group = EndsOf(gradients, buckets, computed_us, beside);
      (beside ? ends.beside : ends.behind).insert(of_group.begin(), of_group.end());
    }
  }
  return ends;
}

}  // namespace isomer
