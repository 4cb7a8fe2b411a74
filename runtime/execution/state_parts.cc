#include "runtime/execution/state_parts.h"

#include <map>
#include <utility>

#include "pcg/ir/weight_update.h"

namespace isomer {

std::vector<StatePart> StatePartsOf(const Schedule& schedule, bool each_once) {
  std::map<TensorRef, int32_t> parameter_of;
  // By parameter and slot.
  std::map<std::pair<int32_t, int32_t>, std::vector<BufferId>> buffers;
  for (size_t p = 0; p < schedule.parameters.size(); ++p) {
    const Schedule::HostTensor& parameter = schedule.parameters[p];
    if (!parameter.trainable) continue;
    const int32_t id = static_cast<int32_t>(p);
    parameter_of[parameter.tensor] = id;
    if (!each_once) continue;
    for (BufferId trained : schedule.DistinctTrained(parameter)) {
      // The last of the steps between two flushes has the newest.
      const BufferId newest = schedule.InStep(trained, schedule.num_steps() - 1);
      if (schedule.buffers[newest].dtype == DataType::kFloat32) {
        buffers[{id, 0}].push_back(newest);
      }
    }
  }
  const int states = NumStates(schedule.options.update.optimizer);
  for (const Task& task : schedule.tasks) {
    if (task.kind != TaskKind::kUpdate || task.step > 0) continue;
    const size_t segments = task.segments;
    for (size_t s = 0; s < segments; ++s) {
      for (int slot = 1; slot <= states; ++slot) {
        const BufferId state = task.writes[slot * segments + s];
        const int32_t parameter = parameter_of.at(schedule.buffers[state].tensor);
        buffers[{parameter, slot}].push_back(state);
      }
    }
  }
  std::vector<StatePart> parts;
  for (const auto& [key, ids] : buffers) {
    for (BufferId id : each_once ? schedule.Distinct(ids) : ids) {
      parts.push_back({key.first, key.second, id});
    }
  }
  return parts;
}

}  // namespace isomer
