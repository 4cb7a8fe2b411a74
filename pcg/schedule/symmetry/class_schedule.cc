#include "pcg/schedule/symmetry/class_schedule.h"

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "pcg/ir/precision.h"
#include "pcg/profile/work.h"
#include "pcg/schedule/lowering/builder.h"
#include "pcg/schedule/lowering/lower.h"
#include "pcg/schedule/lowering/update.h"
#include "pcg/schedule/symmetry/class_sizes.h"
#include "pcg/schedule/symmetry/device_classes.h"
#include "pcg/schedule/symmetry/micro_batch_classes.h"
#include "pcg/schedule/symmetry/symmetric_devices.h"
#include "pcg/support/status_macros.h"

namespace isomer {
namespace {

// Gives the tasks of a schedule of classes what they are among all devices.
class TaskPatcher {
 public:
  TaskPatcher(const Graph& graph, const DeviceClasses& classes, Schedule* schedule)
      : graph_(graph), classes_(classes), schedule_(*schedule), calls_(graph.num_nodes()) {}

  // REQUIRES: buffers have their sizes, and `volumes` are those they had before, and devices.
  absl::Status Run(const std::vector<int64_t>& volumes) {
    volumes_ = &volumes;
    for (Task& task : schedule_.tasks) {
      if (task.devices.size() > 1) FindWhole(&task);
      for (int32_t& device : task.devices) {
        device = static_cast<int32_t>(classes_.DeviceOf(device));
      }
      ISOMER_RETURN_IF_ERROR(Resize(&task));
    }
    return absl::OkStatus();
  }

 private:
  static constexpr int32_t kItself = -1;

  // The values of the digits of a device of the schedule of classes.
  std::vector<int64_t> DigitsOf(int64_t reduced) const {
    std::vector<int64_t> digits;
    for (int64_t radix : classes_.reduced_radix) {
      digits.push_back(reduced % radix);
      reduced /= radix;
    }
    return digits;
  }

  // Of a digit that has fewer values here, those in which some devices differ: how many, and the
  // least; of others, 1.
  struct Values {
    int64_t least = 0, count = 1;
  };
  std::vector<Values> ShortDigitsIn(absl::Span<const int32_t> reduced) const {
    std::vector<std::vector<bool>> seen;
    for (int64_t radix : classes_.reduced_radix) seen.emplace_back(radix, false);
    for (int32_t device : reduced) {
      const std::vector<int64_t> digits = DigitsOf(device);
      for (size_t k = 0; k < digits.size(); ++k) seen[k][digits[k]] = true;
    }
    std::vector<Values> values(seen.size());
    for (size_t k = 0; k < seen.size(); ++k) {
      if (classes_.radix[k] == classes_.reduced_radix[k]) continue;
      values[k].least = std::find(seen[k].begin(), seen[k].end(), true) - seen[k].begin();
      values[k].count = std::count(seen[k].begin(), seen[k].end(), true);
    }
    return values;
  }

  // How many values of digit `k` such devices stand for.
  int64_t CountOf(size_t k, const Values& values) const {
    return values.count * classes_.radix[k] / classes_.reduced_radix[k];
  }

  // All devices that those of a task stand for; none where digits change with each other, so that
  // as few are there among all.
  std::vector<int32_t> Expand(absl::Span<const int32_t> reduced,
                              const std::vector<Values>& values) const {
    std::vector<int32_t> all;
    for (int32_t device : reduced) {
      const std::vector<int64_t> digits = DigitsOf(device);
      bool first = true;
      int64_t beside = classes_.DeviceOf(device), weight = 1;
      for (size_t k = 0; k < digits.size(); ++k) {
        if (values[k].count > 1) {
          first &= digits[k] == values[k].least;
          beside -= digits[k] * weight;
        }
        weight *= classes_.radix[k];
      }
      if (first) all.push_back(static_cast<int32_t>(beside));
    }
    int64_t weight = 1;
    for (size_t k = 0; k < values.size(); ++k) {
      const size_t count = all.size();
      if (values[k].count > 1) {
        const int64_t least = values[k].least * classes_.radix[k] / classes_.reduced_radix[k];
        for (size_t i = 0; i < count; ++i) all[i] += static_cast<int32_t>(least * weight);
        for (int64_t value = 1; value < CountOf(k, values[k]); ++value) {
          for (size_t i = 0; i < count; ++i) {
            all.push_back(all[i] + static_cast<int32_t>(value * weight));
          }
        }
      }
      weight *= classes_.radix[k];
    }
    std::sort(all.begin(), all.end());
    return all;
  }

  std::vector<int64_t> DigitsOfBuffer(BufferId id) const {
    return DigitsOf(classes_.ClassOf(schedule_.buffers[id].device));
  }

  // Whom one device has transfers with, itself included.
  struct Partners {
    std::vector<int64_t> first;  // digits of one of them
    std::vector<bool> differ;    // digits in which others differ from that one
    void Add(const std::vector<int64_t>& digits) {
      if (first.empty()) {
        first = digits;
        differ.assign(digits.size(), false);
      }
      for (size_t k = 0; k < digits.size(); ++k) differ[k] = differ[k] || digits[k] != first[k];
    }
  };

  // For how many of a node, which share its links, each of these stands.
  int64_t SharersOfNode(const Partners& devices, const std::vector<Values>& values) const {
    int64_t sharers = 1, weight = 1;
    for (size_t k = 0; k < values.size(); ++k) {
      weight *= classes_.radix[k];
      if (weight > classes_.node) break;
      if (values[k].count > 1 && devices.differ[k]) {
        sharers *= CountOf(k, values[k]) / values[k].count;
      }
    }
    return sharers;
  }

  // A device that receives from one other value of a digit does so from each, if it receives from
  // several; not, if which one it is depends on the device's own digits.
  std::vector<Schedule::Whole::Count> CountsOf(const Task& task,
                                               const std::vector<Values>& values) const {
    std::map<std::vector<int64_t>, Partners> senders, receivers;  // by who receives, or sends
    Partners all_senders, all_receivers;
    std::vector<std::pair<std::vector<int64_t>, std::vector<int64_t>>> ends;  // of transfers
    for (const auto& [read, write] : task.transfers) {
      const auto& [from, to] =
          ends.emplace_back(DigitsOfBuffer(task.reads[read]), DigitsOfBuffer(task.writes[write]));
      senders[to].Add(from);
      receivers[from].Add(to);
      all_senders.Add(from);
      all_receivers.Add(to);
    }
    const Schedule::Whole::Count of_node = {.receivers = SharersOfNode(all_receivers, values),
                                            .senders = SharersOfNode(all_senders, values)};
    std::vector<Schedule::Whole::Count> counts;
    for (const auto& [from, to] : ends) {
      const std::vector<bool>& several_send = senders[to].differ;
      const std::vector<bool>& several_receive = receivers[from].differ;
      Schedule::Whole::Count count = of_node;
      for (size_t k = 0; k < values.size(); ++k) {
        if (values[k].count == 1 || from[k] == to[k]) continue;
        const int64_t others = values[k].count - 1;
        const int64_t each = (CountOf(k, values[k]) - 1 + others - 1) / others;
        if (several_send[k]) count.received *= each;
        if (several_receive[k]) count.sent *= each;
      }
      counts.push_back(count);
    }
    return counts;
  }

  // REQUIRES: task.devices are those of the schedule of classes.
  void FindWhole(Task* task) {
    const auto [known, added] = groups_.try_emplace(task->devices, kItself);
    if (added) {
      const std::vector<Values> values = ShortDigitsIn(task->devices);
      const bool is_short = std::any_of(values.begin(), values.end(),
                                        [](const Values& digit) { return digit.count > 1; });
      std::vector<int32_t> all;
      if (is_short) all = Expand(task->devices, values);
      if (!all.empty()) {
        known->second = static_cast<int32_t>(schedule_.wholes.size());
        schedule_.wholes.push_back({.devices = std::move(all), .counts = {}});
      }
    }
    task->whole = known->second;
    if (task->whole < 0 || task->kind != TaskKind::kSendReceive) return;
    std::vector<Schedule::Whole::Count> counts = CountsOf(*task, ShortDigitsIn(task->devices));
    const auto [like, is_new] =
        counted_.try_emplace({task->whole, counts}, static_cast<int32_t>(schedule_.wholes.size()));
    if (is_new) {
      schedule_.wholes.push_back(
          {.devices = schedule_.wholes[task->whole].devices, .counts = std::move(counts)});
    }
    task->whole = like->second;
  }

  int64_t BytesOf(BufferId id) const { return id == kNoBuffer ? 0 : schedule_.buffers[id].bytes(); }

  // A number that grows as this buffer does.
  template <typename Number>
  Number Scaled(Number number, BufferId id) const {
    const int64_t before = (*volumes_)[id], now = schedule_.buffers[id].box.Volume();
    return before == now ? number : number / static_cast<Number>(before) * static_cast<Number>(now);
  }

  absl::Status Resize(Task* task) {
    switch (task->kind) {
      case TaskKind::kCompute:
      case TaskKind::kComputeGradient:
        return SetWork(task);
      case TaskKind::kLoad:
      case TaskKind::kFeed:
      case TaskKind::kFill:
      case TaskKind::kAccumulate:
      case TaskKind::kConvert:
      case TaskKind::kUnload:
      case TaskKind::kOffload:
      case TaskKind::kFetch: {
        // In proportion to what is written.
        const BufferId id = task->writes.empty() ? task->reads[0] : task->writes[0];
        task->flops = Scaled(task->flops, id);
        task->bytes = Scaled(task->bytes, id);
        return absl::OkStatus();
      }
      case TaskKind::kUpdate:
        SetUpdateWork(schedule_, task);
        return absl::OkStatus();
      case TaskKind::kLocal:
      case TaskKind::kSendReceive:
        SetTransferred(task);
        return absl::OkStatus();
      case TaskKind::kAllReduce:
      case TaskKind::kReduceScatter:
      case TaskKind::kAllGather:
      case TaskKind::kAllToAll:
      case TaskKind::kReduce:
      case TaskKind::kBroadcast:
        break;
    }
    task->bytes = 0;
    for (int32_t i = 0; i < task->segments; ++i) {
      task->bytes += BytesOf(task->kind == TaskKind::kAllGather ? task->writes[i] : task->reads[i]);
    }
    return absl::OkStatus();
  }

  void SetTransferred(Task* task) const {
    int64_t crossing = 0, local = 0;
    for (size_t i = 0; i < task->transfers.size(); ++i) {
      const Buffer& from = schedule_.buffers[task->reads[task->transfers[i].first]];
      const Buffer& to = schedule_.buffers[task->writes[task->transfers[i].second]];
      const int64_t bytes = IntersectionVolume(from.box, to.box) * BytesPerElement(to.dtype);
      (from.device == to.device ? local : crossing) += bytes * schedule_.CountOf(*task, i).most();
    }
    task->bytes = task->kind == TaskKind::kLocal ? 2 * local : crossing;
  }

  absl::Status SetWork(Task* task) {
    if (!calls_.Contains(task->node)) ISOMER_RETURN_IF_ERROR(calls_.Add(graph_, task->node));
    std::vector<bool> wanted;
    if (task->kind == TaskKind::kComputeGradient) {
      for (BufferId id : task->writes) wanted.push_back(id != kNoBuffer);
    }
    const Work& work = wanted.empty() ? calls_.ForwardWorkOf(task->node)
                                      : calls_.GradientWorkOf(task->node, wanted);
    task->flops = work.flops;
    task->bytes = work.bytes;
    const bool saves =
        wanted.empty() && task->writes.size() > graph_.node(task->node).outputs.size();
    if (saves) task->bytes += calls_.SavedBy(task->node)->bytes();
    return absl::OkStatus();
  }

  const Graph& graph_;
  const DeviceClasses& classes_;
  Schedule& schedule_;
  const std::vector<int64_t>* volumes_ = nullptr;
  CallTable calls_;                                             // of all devices
  absl::flat_hash_map<SmallList<int32_t, 4>, int32_t> groups_;  // to wholes, or kItself
  std::map<std::pair<int32_t, std::vector<Schedule::Whole::Count>>, int32_t> counted_;
};

// Of all nodes, in `moments` micro-batches where there are `represented`.
int64_t ShardsOf(const Plan& plan, int64_t moments, int64_t represented) {
  int64_t sum = 0;
  for (int id = 0; id < plan.graph.num_nodes(); ++id) {
    const int64_t shards = plan.graph.node({id}).outputs[0].NumShards();
    sum += NumMoments(plan.views[id]) > 1 ? shards / represented * moments : shards;
  }
  return sum;
}

struct FoundClasses {
  DeviceClasses classes;
  int64_t whole;
};

// How many of the devices may stand for one that is kept.
int64_t DevicesForEach(const DeviceClasses& classes) {
  int64_t devices = 1;
  for (size_t k = 0; k < classes.alike.size(); ++k) {
    if (classes.alike[k]) devices *= classes.reduced_radix[k];
  }
  return devices;
}

// The first of `wholes` that leaves at most `most_shards`, else that which may keep fewest. Absent
// where all devices are no more than that, and no fewer stand for them with the first of `wholes`:
// others would lack devices that meet at the links of a node.
std::optional<FoundClasses> FindClasses(const Plan& plan, absl::Span<const int64_t> wholes,
                                        int64_t most_shards, int64_t moments, int64_t represented,
                                        int64_t made, int64_t alike) {
  std::optional<FoundClasses> classes;
  int64_t fewest = ShardsOf(plan, 1, 1), fewest_kept = 0;  // the second with `classes`
  for (int64_t whole : wholes) {
    if (whole != wholes[0] && fewest <= most_shards) break;
    std::optional<DeviceClasses> found = ClassesOfDevices(plan, {.whole = whole,
                                                                 .node = wholes[0],
                                                                 .alike = alike,
                                                                 .moments = moments,
                                                                 .represented = represented,
                                                                 .widen = true,
                                                                 .uncut_alike = true});
    if (!found.has_value()) continue;
    const int64_t shards = ShardsOf(found->plan, made, represented);
    const int64_t kept = shards / DevicesForEach(*found);
    if (classes.has_value() && std::pair(kept, shards) >= std::pair(fewest_kept, fewest)) continue;
    fewest = shards;
    fewest_kept = kept;
    classes = FoundClasses{*std::move(found), whole};
  }
  return classes;
}

absl::Status CheckShards(const Plan& plan, int64_t shards, int64_t limit) {
  if (shards <= limit) return absl::OkStatus();
  return absl::ResourceExhaustedError(absl::StrCat("a schedule of ", shards, " shards on ",
                                                   plan.num_devices,
                                                   " devices, of which too few are alike"));
}

struct WantedMicroBatches {
  int64_t moments, made;  // micro-batches of a step, and those that are made
  int64_t shards, limit;  // of all devices of the classes, and the most of those that are kept
};

// Absent if micro-batches that should stand for others are not like them.
absl::StatusOr<std::optional<LoweredPlan>> LowerClasses(const Plan& plan, DeviceClasses classes,
                                                        const WantedMicroBatches& wanted) {
  LoweredPlan lowered;
  ISOMER_ASSIGN_OR_RETURN(lowered.mapped, InPrecisionOf(plan, plan.graph, plan.views));
  ISOMER_ASSIGN_OR_RETURN(const MappedGraph reduced,
                          InPrecisionOf(plan, classes.plan.graph, classes.plan.views));
  classes.plan.graph = Graph();
  classes.plan.views.clear();
  const ClassSizes sizes(classes, lowered.mapped, reduced);
  ScheduleOptions options = ScheduleOptionsOf(plan);
  options.num_devices = classes.plan.num_devices;
  options.recomputed = reduced.recomputed;
  options.shrink = sizes.Shrink();
  const auto lower = [&] {
    return LowerToTasks(reduced.graph, reduced.views, options, /*interleave=*/true);
  };
  Schedule& schedule = lowered.schedule;
  ISOMER_ASSIGN_OR_RETURN(schedule, lower());
  if (sizes.KeepWhole(schedule, &options.update)) {
    ISOMER_ASSIGN_OR_RETURN(schedule, lower());
  }
  for (int64_t d = 0; d < classes.plan.num_devices; ++d) {
    schedule.represented.push_back(static_cast<int32_t>(classes.DeviceOf(d)));
  }
  std::vector<int64_t> volumes;
  for (Buffer& buffer : schedule.buffers) {
    volumes.push_back(buffer.box.Volume());
    sizes.Resize(&buffer);
  }
  ISOMER_RETURN_IF_ERROR(TaskPatcher(lowered.mapped.graph, classes, &schedule).Run(volumes));
  schedule.options = ScheduleOptionsOf(plan);
  schedule.options.offloaded = lowered.mapped.offloaded;
  const auto& [moments, made, shards, limit] = wanted;
  if (made < moments) schedule.options.moments_of_step = static_cast<int32_t>(moments);
  schedule.shards.clear();
  schedule.output_copies.clear();
  lowered.tasks_for_each = KeepOneOfSymmetricDevices(classes, &schedule);
  const auto kept = static_cast<int64_t>(schedule.represented.size());
  if (kept == plan.num_devices) schedule.represented.clear();
  ISOMER_RETURN_IF_ERROR(CheckShards(plan, shards / classes.plan.num_devices * kept, limit));
  if (schedule.num_moments != made &&
      !RepeatMicroBatches(lowered.mapped.graph, lowered.mapped.views, static_cast<int32_t>(made),
                          &schedule)) {
    return std::nullopt;
  }
  ISOMER_RETURN_IF_ERROR(FinishSchedule(lowered.mapped.graph, &schedule));
  return lowered;
}

}  // namespace

int64_t LeastMade(int64_t moments) { return RepresentedMoments(moments); }

bool LacksDevicesOfNodes(const Plan& plan, absl::Span<const int64_t> wholes, int64_t most_shards,
                         int64_t made, int64_t alike) {
  const absl::StatusOr<int64_t> moments = NumMicroBatches(plan.graph, plan.views);
  if (!moments.ok()) return false;
  const std::optional<FoundClasses> found =
      FindClasses(plan, wholes, most_shards, *moments, RepresentedMoments(*moments),
                  std::min(*moments, made), alike);
  return found.has_value() && found->whole != wholes[0];
}

absl::StatusOr<LoweredPlan> LowerPlanInClasses(const Plan& plan, absl::Span<const int64_t> wholes,
                                               int64_t most_shards, int64_t limit, int64_t made,
                                               int64_t alike) {
  ISOMER_ASSIGN_OR_RETURN(const int64_t moments, NumMicroBatches(plan.graph, plan.views));
  // Only micro-batches that stand for others can be fewer than all.
  const auto made_of = [&](int64_t represented) {
    return represented < moments ? std::min(moments, made) : moments;
  };
  for (int64_t represented : {RepresentedMoments(moments), moments}) {
    std::optional<FoundClasses> found =
        FindClasses(plan, wholes, most_shards, moments, represented, made_of(represented), alike);
    if (!found.has_value()) continue;
    const Plan& few = found->classes.plan;
    const int64_t made = made_of(represented);
    const WantedMicroBatches wanted = {moments, made, ShardsOf(few, made, represented), limit};
    // What is lowered, before micro-batches are repeated on those devices that are kept.
    ISOMER_RETURN_IF_ERROR(CheckShards(plan, ShardsOf(few, represented, represented), limit));
    ISOMER_ASSIGN_OR_RETURN(std::optional<LoweredPlan> lowered,
                            LowerClasses(plan, std::move(found->classes), wanted));
    if (lowered.has_value()) return *std::move(lowered);
  }
  ISOMER_RETURN_IF_ERROR(CheckShards(plan, ShardsOf(plan, moments, moments), limit));
  return LowerPlan(plan);
}

}  // namespace isomer
