#include "pcg/schedule/check/check_micro_batches.h"

#include <algorithm>
#include <set>
#include <tuple>
#include <vector>

#include "absl/strings/str_cat.h"
#include "pcg/schedule/check/check_calls.h"
#include "pcg/schedule/order/pipeline.h"
#include "pcg/schedule/order/weight_gradients.h"
#include "pcg/schedule/task_error.h"
#include "pcg/support/status_macros.h"

namespace isomer {
namespace {

absl::Status CheckLabels(const Graph& graph, const Schedule& schedule) {
  // Of gradients in two tasks by the operand that is the first of the task.
  std::set<std::tuple<TaskKind, Phase, NodeId, int32_t, int32_t, int32_t, int64_t>> calls;
  for (size_t t = 0; t < schedule.tasks.size(); ++t) {
    const Task& task = schedule.tasks[t];
    const auto error = [&](absl::string_view what) {
      return TaskError(graph, schedule, static_cast<int32_t>(t), what);
    };
    if (task.moment < kNoMoment || task.moment >= schedule.num_moments) {
      return error(absl::StrCat("is of micro-batch ", task.moment, " of ", schedule.num_moments));
    }
    // What is of no micro-batch is done once, too.
    if (!IsOfKernel(task.kind)) continue;
    const auto first = std::find_if(task.writes.begin(), task.writes.end(),
                                    [](BufferId id) { return id != kNoBuffer; });
    if (!calls
             .emplace(task.kind, task.phase, task.node, task.devices[0], task.moment, task.step,
                      first - task.writes.begin())
             .second) {
      return error(absl::StrCat("is the second of micro-batch ", task.moment, " on its device"));
    }
  }
  return absl::OkStatus();
}

std::vector<PipelineSlot> SlotsOfTasks(const Schedule& schedule, const PipelineStages& stages) {
  const std::vector<bool> of_weights = WeightGradients(schedule, stages.group);
  std::vector<PipelineSlot> slots;
  for (size_t t = 0; t < schedule.tasks.size(); ++t) {
    const Task& task = schedule.tasks[t];
    slots.push_back({task.phase, task.moment, stages.ChunkOf(t), of_weights[t]});
  }
  return slots;
}

absl::Status CheckPipelineOrder(const Graph& graph, const Schedule& schedule,
                                const std::vector<PipelineSlot>& slot_of, int32_t device,
                                const std::vector<PipelineSlot>& slots) {
  // Slots with calls of the device: it may have none that are differentiated, or none at all.
  std::vector<PipelineSlot> expected;
  std::set<PipelineSlot> present;
  for (int32_t t : schedule.programs[device]) {
    if (IsOfKernel(schedule.tasks[t].kind) && slot_of[t].moment != kNoMoment) {
      present.insert(slot_of[t]);
    }
  }
  for (const PipelineSlot& slot : slots) {
    if (present.contains(slot)) expected.push_back(slot);
  }
  size_t at = 0;
  for (int32_t t : schedule.programs[device]) {
    const Task& task = schedule.tasks[t];
    if (!IsOfKernel(task.kind) || task.moment == kNoMoment) continue;
    const PipelineSlot& slot = slot_of[t];
    if (at < expected.size() && slot != expected[at]) ++at;
    if (at >= expected.size() || slot != expected[at]) {
      return TaskError(
          graph, schedule, t,
          absl::StrCat("the ", PhaseName(slot.phase), " of micro-batch ", slot.moment,
                       slot.of_weights ? ", of weights," : "", " is not next in pipeline order"),
          device);
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status CheckMicroBatches(const Graph& graph, const Schedule& schedule) {
  ISOMER_RETURN_IF_ERROR(CheckLabels(graph, schedule));
  if (schedule.num_moments == 1 || MixesMicroBatches(schedule)) return absl::OkStatus();
  const PipelineStages stages = StagesOf(schedule);
  const PipelineShape shape = ShapeOf(schedule, stages);
  ISOMER_ASSIGN_OR_RETURN(const std::vector<std::vector<PipelineSlot>> slots,
                          SlotsOfStages(schedule.options.order, shape));
  const std::vector<PipelineSlot> slot_of = SlotsOfTasks(schedule, stages);
  for (size_t d = 0; d < schedule.programs.size(); ++d) {
    const auto device = static_cast<int32_t>(d);
    ISOMER_RETURN_IF_ERROR(
        CheckPipelineOrder(graph, schedule, slot_of, device, slots[stages.stage[d]]));
  }
  return absl::OkStatus();
}

}  // namespace isomer
