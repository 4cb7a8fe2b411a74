#include "pcg/schedule/lowering/lower.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "pcg/ir/states.h"
#include "pcg/schedule/layout.h"
#include "pcg/schedule/lowering/builder.h"
#include "pcg/schedule/lowering/output_copies.h"
#include "pcg/schedule/lowering/update.h"
#include "pcg/schedule/memory/additions.h"
#include "pcg/schedule/memory/carries.h"
#include "pcg/schedule/memory/offload.h"
#include "pcg/schedule/memory/views.h"
#include "pcg/schedule/order/pipeline.h"
#include "pcg/schedule/order/weight_versions.h"
#include "pcg/support/status_macros.h"

namespace isomer {
namespace {

// Outputs, one copy of each shard; gradients if they are kept; parameters, one copy.
void LowerUnload(ScheduleBuilder* builder) {
  const Schedule& schedule = builder->schedule();
  const auto unload = [builder](TensorRef tensor, BufferId id) {
    builder->AddTask(TaskKind::kUnload, Phase::kUnload, tensor.node, builder->buffer(id).device,
                     {id}, {});
  };
  for (const Graph::NamedOutput& output :
       OutputsForHost(builder->graph(), schedule.options.training)) {
    const TensorType& type = builder->graph().type(output.tensor);
    const std::vector<BufferId>& ids = schedule.OutputShards(output.tensor);
    for (size_t s = 0; s < ids.size(); ++s) {
      if (CoordinatesOfShard(type, static_cast<int64_t>(s)).copy == 0) {
        unload(output.tensor, ids[s]);
      }
    }
  }
  for (const Schedule::HostTensor& parameter : schedule.parameters) {
    if (schedule.options.keep_gradients) {
      for (BufferId id : schedule.DistinctGradients(parameter)) unload(parameter.tensor, id);
    }
    if (!schedule.options.training) continue;
    for (BufferId id : schedule.DistinctTrained(parameter)) unload(parameter.tensor, id);
  }
}

// A task comes after the last writer of what it reads, and after the last readers and writer of
// what it writes.
void AddDependencies(Schedule* schedule) {
  // The readers of a buffer since it was written last are a list, the latest first.
  struct Reader {
    int32_t task, next;
  };
  constexpr int32_t kEnd = -1;
  std::vector<Reader> readers;
  std::vector<int32_t> first(schedule->buffers.size(), kEnd), writer(first);
  for (size_t t = 0; t < schedule->tasks.size(); ++t) {
    Task& task = schedule->tasks[t];
    for (BufferId id : task.reads) {
      if (id != kNoBuffer && writer[id] >= 0) task.deps.push_back(writer[id]);
    }
    // An accumulation reads what it adds to.
    for (BufferId id : task.writes) {
      if (id == kNoBuffer) continue;
      if (writer[id] >= 0) task.deps.push_back(writer[id]);
      for (int32_t r = first[id]; r != kEnd; r = readers[r].next) {
        task.deps.push_back(readers[r].task);
      }
    }
    for (BufferId id : task.reads) {
      if (id == kNoBuffer) continue;
      readers.push_back({static_cast<int32_t>(t), first[id]});
      first[id] = static_cast<int32_t>(readers.size()) - 1;
    }
    for (BufferId id : task.writes) {
      if (id == kNoBuffer) continue;
      writer[id] = static_cast<int32_t>(t);
      first[id] = kEnd;
    }
    std::sort(task.deps.begin(), task.deps.end());
    task.deps.erase(std::unique(task.deps.begin(), task.deps.end()), task.deps.end());
  }
}

// Shares of a gradient are added to its sum in any order: each waits for the first, and who reads
// the sum for all. REQUIRES: deps are those of AddDependencies.
void LetSumsCommute(Schedule* schedule) {
  std::vector<int32_t> first(schedule->buffers.size(), -1);
  std::vector<std::vector<int32_t>> additions(schedule->buffers.size());
  for (size_t t = 0; t < schedule->tasks.size(); ++t) {
    Task& task = schedule->tasks[t];
    std::vector<int32_t> deps(task.deps.begin(), task.deps.end());
    const auto waits_for = [&](BufferId id) {
      if (id == kNoBuffer) return;
      deps.insert(deps.end(), additions[id].begin(), additions[id].end());
    };
    for (BufferId id : task.reads) waits_for(id);
    if (task.kind == TaskKind::kAccumulate) {
      const BufferId sum = task.writes[0];
      std::erase_if(deps, [&](int32_t dep) {
        const Task& other = schedule->tasks[dep];
        return other.kind == TaskKind::kAccumulate && other.writes[0] == sum;
      });
      if (first[sum] >= 0) deps.push_back(first[sum]);
      additions[sum].push_back(static_cast<int32_t>(t));
    } else {
      for (BufferId id : task.writes) {
        waits_for(id);
        if (id == kNoBuffer) continue;
        first[id] = static_cast<int32_t>(t);
        additions[id].clear();
      }
    }
    std::sort(deps.begin(), deps.end());
    deps.erase(std::unique(deps.begin(), deps.end()), deps.end());
    task.deps.assign(deps.begin(), deps.end());
  }
}

void AddPrograms(Schedule* schedule) {
  schedule->programs.assign(schedule->options.num_devices, {});
  for (size_t t = 0; t < schedule->tasks.size(); ++t) {
    for (int32_t device : schedule->tasks[t].devices) {
      schedule->programs[device].push_back(static_cast<int32_t>(t));
    }
  }
}

absl::StatusOr<int32_t> CountMoments(const Graph& graph, absl::Span<const MachineView> views,
                                     const ScheduleOptions& options) {
  for (int id = 0; id < graph.num_nodes(); ++id) {
    if (views[id].moments.empty()) continue;
    absl::Status valid = ValidateView(views[id], graph.node(id).outputs[0], options.num_devices);
    if (!valid.ok()) {
      return absl::InvalidArgumentError(absl::StrCat(graph.Label({id}), ": ", valid.message()));
    }
  }
  ISOMER_ASSIGN_OR_RETURN(const int64_t moments, NumMicroBatches(graph, views));
  if (moments > (1 << 20)) {
    return absl::InvalidArgumentError(absl::StrCat(moments, " micro-batches"));
  }
  return static_cast<int32_t>(moments);
}

// Of tasks and buffers of the forward pass, how many a training step has, at most nearly always.
constexpr size_t kTrainingGrowth = 6;

}  // namespace

absl::StatusOr<Schedule> LowerToTasks(const Graph& graph, absl::Span<const MachineView> views,
                                      const ScheduleOptions& options, bool interleave,
                                      CallTable* calls) {
  if (static_cast<int>(views.size()) != graph.num_nodes()) {
    return absl::InvalidArgumentError(
        absl::StrCat(views.size(), " machine views for ", graph.num_nodes(), " nodes"));
  }
  if (options.num_devices < 1 || options.num_devices > (1 << 20)) {
    return absl::InvalidArgumentError(absl::StrCat(options.num_devices, " devices"));
  }
  ScheduleBuilder builder(graph, views, options);
  ISOMER_ASSIGN_OR_RETURN(builder.schedule().num_moments, CountMoments(graph, views, options));
  ISOMER_RETURN_IF_ERROR(LowerForward(&builder, interleave));
  if (options.training) {
    AddOutputCopies(&builder);
    // Room that is not used takes no memory; room that is too little, twice what it holds.
    builder.schedule().tasks.reserve(kTrainingGrowth * builder.schedule().tasks.size());
    builder.schedule().buffers.reserve(kTrainingGrowth * builder.schedule().buffers.size());
    UpdateLowering updates(&builder);
    ISOMER_RETURN_IF_ERROR(LowerBackward(&builder, &updates));
    updates.LowerUpdates();
  }
  LowerUnload(&builder);
  if (calls != nullptr) *calls = std::move(builder.calls());
  return std::move(builder.schedule());
}

absl::Status FinishSchedule(const Graph& graph, Schedule* schedule) {
  ISOMER_RETURN_IF_ERROR(RepeatSteps(schedule));
  AddDependencies(schedule);
  // The second halves of backward passes may be in another order than micro-batches.
  const bool commutes = schedule->options.zero_bubble.splits();
  if (commutes) LetSumsCommute(schedule);
  ISOMER_RETURN_IF_ERROR(OrderMicroBatches(schedule));
  ISOMER_ASSIGN_OR_RETURN(const bool offloads, OffloadValues(schedule));
  if (commutes || offloads) {
    for (Task& task : schedule->tasks) task.deps.clear();
    AddDependencies(schedule);
  }
  AddPrograms(schedule);
  ChooseLayouts(graph, schedule);
  MarkViews(graph, schedule);
  MarkCarries(graph, schedule);
  MarkAdditions(graph, schedule);
  return absl::OkStatus();
}

absl::StatusOr<Schedule> LowerInOrder(const Graph& graph, absl::Span<const MachineView> views,
                                      const ScheduleOptions& options, bool interleave) {
  CallTable calls;
  ISOMER_ASSIGN_OR_RETURN(Schedule schedule,
                          LowerToTasks(graph, views, options, interleave, &calls));
  for (int id = 0; id < graph.num_nodes(); ++id) {
    if (calls.Contains({id})) schedule.shardings[id] = calls.ShardingOf({id});
  }
  ISOMER_RETURN_IF_ERROR(FinishSchedule(graph, &schedule));
  return schedule;
}

absl::StatusOr<Schedule> LowerGraph(const Graph& graph, absl::Span<const MachineView> views,
                                    const ScheduleOptions& options) {
  return LowerInOrder(graph, views, options, /*interleave=*/false);
}

ScheduleOptions ScheduleOptionsOf(const Plan& plan) {
  ScheduleOptions options;
  options.training = plan.mode == "training";
  options.num_devices = plan.num_devices;
  options.loss = plan.model.loss;
  options.seed = LossScale(plan.precision);
  options.update = plan.update;
  options.zero_bubble = plan.zero_bubble;
  options.spread_branches = plan.spread_branches;
  return options;
}

absl::StatusOr<LoweredPlan> LowerPlan(const Plan& plan, bool keep_gradients) {
  ScheduleOptions options = ScheduleOptionsOf(plan);
  options.keep_gradients = keep_gradients;
  LoweredPlan lowered;
  ISOMER_ASSIGN_OR_RETURN(lowered.mapped, InPrecisionOf(plan, plan.graph, plan.views));
  options.recomputed = lowered.mapped.recomputed;
  options.offloaded = lowered.mapped.offloaded;
  ISOMER_ASSIGN_OR_RETURN(lowered.schedule,
                          LowerInOrder(lowered.mapped.graph, lowered.mapped.views, options,
                                       /*interleave=*/true));
  return lowered;
}

}  // namespace isomer
