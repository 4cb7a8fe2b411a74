#include "runtime/execution/state_parts.h"

#include <map>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
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
  const int states = schedule.options.update.num_states();
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

absl::StatusOr<std::vector<UnheldPart>> UnheldPartsOf(const Graph& graph,
                                                      const Schedule& schedule) {
  using Key = std::pair<NodeId, int32_t>;
  const std::vector<StatePart> parts = StatePartsOf(schedule, /*each_once=*/true);
  std::map<int32_t, Arrangement> arrangements;  // by parameter
  std::map<Key, int64_t> held;
  for (const StatePart& part : parts) {
    const Schedule::HostTensor& parameter = schedule.parameters[part.parameter];
    auto known = arrangements.find(part.parameter);
    if (known == arrangements.end()) {
      std::optional<Arrangement> arrangement = Arrangement::Of(graph, parameter);
      if (!arrangement.has_value()) {
        return absl::UnimplementedError(absl::StrCat(
            graph.Label(parameter.tensor.node), ": it is trained, and no arrangement of weights"));
      }
      known = arrangements.emplace(part.parameter, *std::move(arrangement)).first;
    }
    for (NodeId leaf : parameter.leaves) {
      held[{leaf, part.slot}] += known->second.ElementsOf(leaf, schedule.buffers[part.buffer].box);
    }
  }
  std::vector<UnheldPart> unheld;
  for (const auto& [key, elements] : held) {
    const auto& [leaf, slot] = key;
    const int64_t all = graph.node(leaf).outputs[0].NumElements();
    if (elements == all) continue;
    std::vector<bool> is_held(static_cast<size_t>(all), false);
    for (const StatePart& part : parts) {
      if (part.slot != slot) continue;
      arrangements.at(part.parameter)
          .ForEachLineOf(leaf, schedule.buffers[part.buffer].box, [&](const LeafLine& line) {
            for (int64_t i = 0; i < line.count; ++i) is_held[line.first + i * line.stride] = true;
          });
    }
    UnheldPart part = {.leaf = leaf, .slot = slot, .lines = {}, .values = {}};
    int64_t place = 0;
    for (int64_t i = 0; i < all; ++i) {
      if (is_held[i]) continue;
      const bool goes_on =
          !part.lines.empty() && part.lines.back().first + part.lines.back().count == i;
      if (!goes_on) part.lines.push_back({leaf, i, 1, 0, place});
      ++part.lines.back().count;
      ++place;
    }
    part.values.assign(static_cast<size_t>(place), 0);
    unheld.push_back(std::move(part));
  }
  return unheld;
}

}  // namespace isomer
