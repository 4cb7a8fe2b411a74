#include "pcg/schedule/lowering/weight_parts.h"

#include <algorithm>
#include <set>
#include <utility>

#include "pcg/ir/weight_cuts.h"
#include "pcg/support/check.h"
#include "pcg/support/status_macros.h"

namespace isomer {

Box Slice(Box box, int64_t part, int64_t parts) {
  const std::vector<int64_t> cuts = CutsOf(box.shape, parts);
  ISOMER_CHECK(!cuts.empty());
  for (size_t i = cuts.size(); i-- > 0; part /= cuts[i]) {
    box.shape[i] /= cuts[i];
    box.origin[i] += part % cuts[i] * box.shape[i];
  }
  return box;
}

int64_t PartOf(const Box& box, const Box& slice, int64_t parts) {
  const std::vector<int64_t> cuts = CutsOf(box.shape, parts);
  int64_t part = 0;
  for (size_t i = 0; i < cuts.size(); ++i) {
    part = part * cuts[i] + (slice.origin[i] - box.origin[i]) / slice.shape[i];
  }
  return part;
}

UpdateMethod MethodAskedFor(const Graph& graph, const UpdateOptions& update,
                            const Schedule::HostTensor& parameter) {
  const auto named = update.methods.find(NameOf(graph, parameter));
  return named == update.methods.end() ? update.method : named->second;
}

bool IsInParts(const Schedule& schedule, const Schedule::HostTensor& parameter) {
  return parameter.stored != schedule.shards.at(parameter.tensor);
}

absl::StatusOr<std::vector<WeightParts::Copies>> WeightParts::PiecesOf(TensorRef tensor) const {
  const TensorType& type = builder_.graph().type(tensor);
  ISOMER_ASSIGN_OR_RETURN(const std::vector<int64_t> devices, builder_.Devices(tensor.node));
  const std::vector<int32_t> moments = builder_.Moments(tensor.node);
  const size_t copies = type.copies;
  std::vector<Copies> pieces;
  for (size_t first = 0; first < devices.size(); first += copies) {
    Copies& piece = pieces.emplace_back();
    for (size_t s = first; s < first + copies; ++s) {
      const int32_t moment = moments.empty() ? kNoMoment : moments[s];
      piece[static_cast<int32_t>(devices[s])][moment] = s;
    }
    const int64_t members = static_cast<int64_t>(piece.size());
    const Box box = ShardBox(type, CoordinatesOfShard(type, static_cast<int64_t>(first)).dims);
    const bool cut = members > 1 && !CutsOf(box.shape, members).empty();
    const bool even = std::all_of(piece.begin(), piece.end(), [&](const auto& copy) {
      return copy.second.size() * piece.size() == copies;
    });
    if (!cut || !even) return std::vector<Copies>();
  }
  return pieces;
}

absl::StatusOr<bool> WeightParts::Store(absl::Span<const NodeId> users,
                                        Schedule::HostTensor* parameter) {
  const ScheduleOptions& options = builder_.options();
  const TensorRef tensor = parameter->tensor;
  if (!options.training || !parameter->trainable ||
      MethodAskedFor(builder_.graph(), options.update, *parameter) !=
          UpdateMethod::kShardedWeights) {
    return false;
  }
  ISOMER_ASSIGN_OR_RETURN(const std::vector<Copies> pieces, PiecesOf(tensor));
  if (pieces.empty()) return false;
  const auto places_of = [this](NodeId node) -> absl::StatusOr<std::set<std::pair<int64_t, int>>> {
    ISOMER_ASSIGN_OR_RETURN(const std::vector<int64_t> devices, builder_.Devices(node));
    const std::vector<int32_t> moments = builder_.Moments(node);
    std::set<std::pair<int64_t, int>> places;
    for (size_t s = 0; s < devices.size(); ++s) {
      places.emplace(devices[s], moments.empty() ? kNoMoment : moments[s]);
    }
    return places;
  };
  ISOMER_ASSIGN_OR_RETURN(const auto places, places_of(tensor.node));
  for (NodeId user : users) {
    if (IsParallel(builder_.graph().node(user).op.kind())) return false;
    ISOMER_ASSIGN_OR_RETURN(const auto others, places_of(user));
    if (others != places) return false;
  }

  const TensorType& type = builder_.graph().type(tensor);
  std::vector<BufferId> shards(type.NumShards(), kNoBuffer);
  parameter->stored = shards;
  for (const Copies& piece : pieces) {
    std::map<int32_t, Task> gathers;  // by micro-batch
    int64_t member = 0;
    for (const auto& [device, copies] : piece) {
      const size_t first = copies.begin()->second;
      const BufferId part =
          builder_.AddShard(BufferRole::kParameter, tensor, static_cast<int64_t>(first), device);
      Box& box = builder_.schedule().buffers[part].box;
      box = Slice(box, member++, static_cast<int64_t>(piece.size()));
      builder_.AddTask(TaskKind::kLoad, Phase::kLoad, tensor.node, device, {}, {part});
      for (const auto& [moment, s] : copies) {
        const BufferId whole = builder_.AddShard(BufferRole::kReceived, tensor,
                                                 static_cast<int64_t>(s), device, moment);
        parameter->stored[s] = part;
        shards[s] = whole;
        Task& gather = gathers
                           .try_emplace(moment, Task{.kind = TaskKind::kAllGather,
                                                     .phase = Phase::kForward,
                                                     .node = tensor.node,
                                                     .moment = moment,
                                                     .of_weights = true})
                           .first->second;
        gather.devices.push_back(device);
        gather.reads.push_back(part);
        gather.writes.push_back(whole);
        gather.bytes = builder_.buffer(whole).bytes();
      }
    }
    for (auto& [moment, gather] : gathers) gathers_[tensor].push_back(std::move(gather));
  }
  builder_.schedule().shards[tensor] = std::move(shards);
  return true;
}

void WeightParts::Gather(TensorRef tensor) {
  const auto found = gathers_.find(tensor);
  if (found == gathers_.end()) return;
  std::vector<Task>& tasks = builder_.schedule().tasks;
  for (Task& task : found->second) tasks.push_back(std::move(task));
  gathers_.erase(found);
}

}  // namespace isomer
