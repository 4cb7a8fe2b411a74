#include "pcg/schedule/order/weight_gradients.h"

#include <algorithm>
#include <cstdint>
#include <utility>

#include "absl/container/flat_hash_set.h"

namespace isomer {
namespace {

using TensorSet = absl::flat_hash_set<std::pair<int32_t, int32_t>>;

std::pair<int32_t, int32_t> KeyOf(TensorRef tensor) { return {tensor.node.value, tensor.output}; }

// Weights, and what is made of them alone.
TensorSet MadeOfWeights(const Schedule& schedule) {
  TensorSet tensors;
  std::vector<bool> made(schedule.buffers.size(), false);
  for (const Task& task : schedule.tasks) {
    const bool loads = task.kind == TaskKind::kLoad;
    if (!loads && task.phase != Phase::kForward) continue;
    if (!loads && (task.reads.empty() || !std::all_of(task.reads.begin(), task.reads.end(),
                                                      [&](BufferId id) { return made[id]; }))) {
      continue;
    }
    for (BufferId id : task.writes) {
      made[id] = true;
      tensors.insert(KeyOf(schedule.buffers[id].tensor));
    }
  }
  return tensors;
}

}  // namespace

std::vector<bool> WeightGradients(const Schedule& schedule, const std::vector<int32_t>& group) {
  if (!schedule.options.zero_bubble.splits()) return std::vector<bool>(schedule.tasks.size());
  TensorSet late = MadeOfWeights(schedule);
  const auto is_gradient = [&](BufferId id) {
    const BufferRole role = schedule.buffers[id].role;
    return role == BufferRole::kGradient || role == BufferRole::kGradientShard;
  };
  const auto is_late = [&](BufferId id) {
    return is_gradient(id) && late.contains(KeyOf(schedule.buffers[id].tensor));
  };
  std::vector<bool> is(schedule.tasks.size(), true);
  // A task that is not makes others of its tensors that are not, either.
  for (bool changed = true; changed;) {
    changed = false;
    for (size_t t = 0; t < schedule.tasks.size(); ++t) {
      const Task& task = schedule.tasks[t];
      if (!is[t]) continue;
      if (task.phase == Phase::kBackward && task.moment != kNoMoment &&
          !CrossesGroups(task, group) &&
          std::all_of(task.writes.begin(), task.writes.end(),
                      [&](BufferId id) { return id == kNoBuffer || is_late(id); })) {
        continue;
      }
      is[t] = false;
      if (task.phase != Phase::kBackward || task.moment == kNoMoment) continue;
      for (BufferId id : task.writes) {
        if (id == kNoBuffer || !is_gradient(id)) continue;
        changed |= late.erase(KeyOf(schedule.buffers[id].tensor)) > 0;
      }
    }
  }
  return is;
}

}  // namespace isomer
