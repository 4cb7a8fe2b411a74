#include "pcg/schedule/class_schedule.h"

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "pcg/precision.h"
#include "pcg/schedule/builder.h"
#include "pcg/schedule/class_sizes.h"
#include "pcg/schedule/device_classes.h"
#include "pcg/schedule/micro_batch_classes.h"
#include "pcg/support/status_macros.h"
#include "pcg/work.h"

namespace isomer {
namespace {

// Gives the tasks of a schedule of classes what they are among all devices.
class TaskPatcher {
 public:
  TaskPatcher(const Graph& graph, const DeviceClasses& classes, Schedule* schedule)
      : graph_(graph), classes_(classes), schedule_(*schedule), work_(graph.num_nodes()) {}

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

  // Digits that have fewer values here, and in which these devices differ.
  std::vector<bool> ShortDigitsIn(absl::Span<const int32_t> reduced) const {
    const std::vector<int64_t> first = DigitsOf(reduced[0]);
    std::vector<bool> differ(first.size(), false);
    for (int32_t device : reduced) {
      const std::vector<int64_t> digits = DigitsOf(device);
      for (size_t k = 0; k < digits.size(); ++k) {
        if (classes_.radix[k] != classes_.reduced_radix[k] && digits[k] != first[k]) {
          differ[k] = true;
        }
      }
    }
    return differ;
  }

  // All devices that those of a task stand for: of digits in which they differ, all values.
  std::vector<int32_t> Expand(absl::Span<const int32_t> reduced,
                              const std::vector<bool>& differ) const {
    std::vector<int32_t> all;
    for (int32_t device : reduced) {
      const std::vector<int64_t> digits = DigitsOf(device);
      bool first = true;
      for (size_t k = 0; k < digits.size(); ++k) first &= !differ[k] || digits[k] == 0;
      if (first) all.push_back(static_cast<int32_t>(classes_.DeviceOf(device)));
    }
    int64_t weight = 1;
    for (size_t k = 0; k < differ.size(); ++k) {
      const size_t count = all.size();
      for (int64_t value = 1; differ[k] && value < classes_.radix[k]; ++value) {
        for (size_t i = 0; i < count; ++i) {
          all.push_back(all[i] + static_cast<int32_t>(value * weight));
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

  // Which of these digits differ between the devices of these buffers.
  std::vector<bool> DifferAmong(absl::Span<const BufferId> ids, std::vector<bool> digits) const {
    const std::vector<int64_t> first = DigitsOfBuffer(ids[0]);
    for (size_t k = 0; k < digits.size(); ++k) {
      digits[k] = digits[k] && std::any_of(ids.begin(), ids.end(), [&](BufferId id) {
                    return DigitsOfBuffer(id)[k] != first[k];
                  });
    }
    return digits;
  }

  // A device that receives from one other value of a digit does so from each, if several send.
  std::vector<Schedule::Whole::Count> CountsOf(const Task& task,
                                               const std::vector<bool>& differ) const {
    const std::vector<bool> senders = DifferAmong(task.reads, differ);
    const std::vector<bool> receivers = DifferAmong(task.writes, differ);
    std::vector<Schedule::Whole::Count> counts;
    for (const auto& [read, write] : task.transfers) {
      const std::vector<int64_t> from = DigitsOfBuffer(task.reads[read]);
      const std::vector<int64_t> to = DigitsOfBuffer(task.writes[write]);
      Schedule::Whole::Count count;
      for (size_t k = 0; k < differ.size(); ++k) {
        if (!differ[k] || from[k] == to[k]) continue;
        const int64_t others = classes_.reduced_radix[k] - 1;
        const int64_t each = (classes_.radix[k] - 1 + others - 1) / others;
        if (senders[k]) count.received *= each;
        if (receivers[k]) count.sent *= each;
      }
      counts.push_back(count);
    }
    return counts;
  }

  // REQUIRES: task.devices are those of the schedule of classes.
  void FindWhole(Task* task) {
    const auto [known, added] = groups_.try_emplace(task->devices, kItself);
    if (added) {
      const std::vector<bool> differ = ShortDigitsIn(task->devices);
      if (std::find(differ.begin(), differ.end(), true) != differ.end()) {
        known->second = static_cast<int32_t>(schedule_.wholes.size());
        schedule_.wholes.push_back({.devices = Expand(task->devices, differ), .counts = {}});
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
      case TaskKind::kUpdate:
      case TaskKind::kUnload: {
        // In proportion to what is written or, in whole or part, updated.
        const BufferId id = task->kind == TaskKind::kUpdate ? task->reads[1]
                            : task->writes.empty()          ? task->reads[0]
                                                            : task->writes[0];
        task->flops = Scaled(task->flops, id);
        task->bytes = Scaled(task->bytes, id);
        return absl::OkStatus();
      }
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

  struct NodeWork {
    std::vector<TensorType> operands;
    std::optional<Sharding> sharding;
    std::map<std::vector<bool>, Work> of;  // by wanted operands; none: forward
  };

  absl::Status SetWork(Task* task) {
    NodeWork& node = work_[task->node.value];
    const Operator& op = graph_.node(task->node).op;
    if (!node.sharding.has_value()) {
      for (TensorRef input : graph_.node(task->node).inputs) {
        node.operands.push_back(graph_.type(input));
      }
      ISOMER_ASSIGN_OR_RETURN(node.sharding, InferSharding(op, node.operands));
    }
    std::vector<bool> wanted;
    if (task->kind == TaskKind::kComputeGradient) {
      for (BufferId id : task->writes) wanted.push_back(id != kNoBuffer);
    }
    const auto [work, added] = node.of.try_emplace(wanted);
    if (added) {
      work->second = wanted.empty() ? ForwardWork(op, *node.sharding, node.operands)
                                    : GradientWork(op, *node.sharding, node.operands, wanted);
    }
    task->flops = work->second.flops;
    task->bytes = work->second.bytes;
    return absl::OkStatus();
  }

  const Graph& graph_;
  const DeviceClasses& classes_;
  Schedule& schedule_;
  const std::vector<int64_t>* volumes_ = nullptr;
  std::vector<NodeWork> work_;                                  // per node
  absl::flat_hash_map<SmallList<int32_t, 4>, int32_t> groups_;  // to wholes, or kItself
  std::map<std::pair<int32_t, std::vector<Schedule::Whole::Count>>, int32_t> counted_;
};

// The first of `wholes` that leaves at most `most_devices`, else the last that leaves fewer.
std::optional<DeviceClasses> FindClasses(const Plan& plan, absl::Span<const int64_t> wholes,
                                         int64_t most_devices, int64_t moments,
                                         int64_t represented) {
  std::optional<DeviceClasses> classes;
  for (int64_t whole : wholes) {
    std::optional<DeviceClasses> found =
        ClassesOfDevices(plan, {.whole = whole, .moments = moments, .represented = represented});
    if (found.has_value()) classes = std::move(found);
    if ((classes.has_value() ? classes->plan : plan).num_devices <= most_devices) break;
  }
  return classes;
}

// Absent if micro-batches that should stand for others are not like them.
absl::StatusOr<std::optional<LoweredPlan>> LowerClasses(const Plan& plan,
                                                        const DeviceClasses& classes,
                                                        int64_t moments) {
  LoweredPlan lowered;
  const auto in_precision = [&](const Plan& of) {
    return ApplyPrecision(of.graph, of.views, plan.model.loss, plan.precision, plan.recomputed,
                          plan.mode == "training");
  };
  ISOMER_ASSIGN_OR_RETURN(lowered.mapped, in_precision(plan));
  ISOMER_ASSIGN_OR_RETURN(const MappedGraph reduced, in_precision(classes.plan));
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
  const bool all = classes.plan.num_devices == plan.num_devices;
  for (int64_t d = 0; !all && d < classes.plan.num_devices; ++d) {
    schedule.represented.push_back(static_cast<int32_t>(classes.DeviceOf(d)));
  }
  std::vector<int64_t> volumes;
  for (Buffer& buffer : schedule.buffers) {
    volumes.push_back(buffer.box.Volume());
    sizes.Resize(&buffer);
  }
  ISOMER_RETURN_IF_ERROR(TaskPatcher(lowered.mapped.graph, classes, &schedule).Run(volumes));
  schedule.options = ScheduleOptionsOf(plan);
  schedule.shards.clear();
  schedule.shardings.assign(schedule.shardings.size(), std::nullopt);
  if (schedule.num_moments != moments &&
      !RepeatMicroBatches(lowered.mapped.graph, lowered.mapped.views, static_cast<int32_t>(moments),
                          &schedule)) {
    return std::nullopt;
  }
  FinishSchedule(&schedule);
  return lowered;
}

}  // namespace

absl::StatusOr<LoweredPlan> LowerPlanInClasses(const Plan& plan, absl::Span<const int64_t> wholes,
                                               int64_t most_devices) {
  ISOMER_ASSIGN_OR_RETURN(const int64_t moments, NumMicroBatches(plan.graph, plan.views));
  for (int64_t represented : {RepresentedMoments(moments), moments}) {
    const std::optional<DeviceClasses> classes =
        FindClasses(plan, wholes, most_devices, moments, represented);
    if (!classes.has_value()) continue;
    ISOMER_ASSIGN_OR_RETURN(std::optional<LoweredPlan> lowered,
                            LowerClasses(plan, *classes, moments));
    if (lowered.has_value()) return *std::move(lowered);
  }
  return LowerPlan(plan);
}

}  // namespace isomer
