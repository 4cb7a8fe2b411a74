#include "pcg/schedule/check/check_host.h"

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "pcg/ir/operator_facts.h"
#include "pcg/ir/states.h"
#include "pcg/schedule/memory/carries.h"
#include "pcg/schedule/task_error.h"

namespace isomer {
namespace {

// Whether `parts` are parameter buffers of the tensor, and together `whole`, each element once.
bool AreParts(const Schedule& schedule, TensorRef tensor, const Box& whole,
              std::vector<BufferId> parts) {
  std::sort(parts.begin(), parts.end());
  parts.erase(std::unique(parts.begin(), parts.end()), parts.end());
  int64_t volume = 0;
  for (size_t i = 0; i < parts.size(); ++i) {
    if (parts[i] < 0 || parts[i] >= static_cast<BufferId>(schedule.buffers.size())) return false;
    const Buffer& part = schedule.buffers[parts[i]];
    if (part.role != BufferRole::kParameter || part.tensor != tensor || !Covers(whole, part.box)) {
      return false;
    }
    volume += part.box.Volume();
    for (size_t j = 0; j < i; ++j) {
      if (!Intersection(part.box, schedule.buffers[parts[j]].box).empty()) return false;
    }
  }
  return volume == whole.Volume();
}

bool IsStoredRightly(const Graph& graph, const Schedule& schedule,
                     const Schedule::HostTensor& parameter) {
  const std::vector<BufferId>& shards = schedule.shards.at(parameter.tensor);
  if (parameter.update != UpdateMethod::kShardedWeights) return parameter.stored == shards;
  if (parameter.stored.size() != shards.size()) return false;
  const TensorType& type = graph.type(parameter.tensor);
  for (int64_t first = 0; first < type.NumShards(); first += type.copies) {
    const auto begin = parameter.stored.begin() + first;
    if (!AreParts(schedule, parameter.tensor, ShardBox(type, CoordinatesOfShard(type, first).dims),
                  {begin, begin + type.copies})) {
      return false;
    }
  }
  return true;
}

}  // namespace

absl::Status CheckStored(const Graph& graph, const Schedule& schedule) {
  for (const Schedule::HostTensor& parameter : schedule.parameters) {
    if (IsStoredRightly(graph, schedule, parameter)) continue;
    return absl::FailedPreconditionError(
        absl::StrCat("schedule: parameter ", graph.Label(parameter.tensor.node),
                     " is not stored as its shards, nor in their parts"));
  }
  return absl::OkStatus();
}

absl::Status CheckCarries(const Graph& graph, const Schedule& schedule) {
  std::map<BufferId, int> carries;  // by buffer of an input that is a state
  const auto of_states = schedule.options.training ? std::vector<State>() : StatesOf(graph);
  for (const Schedule::HostTensor& input : schedule.inputs) {
    const auto is_input = [&](const State& state) {
      return absl::c_linear_search(input.leaves, state.input);
    };
    if (absl::c_none_of(of_states, is_input)) continue;
    if (input.leaves.size() > 1) {
      return absl::FailedPreconditionError(absl::StrCat(
          "schedule: ", graph.Label(input.tensor.node), ": a state is put together with others"));
    }
    for (NodeId id : input.operators) {
      if (IsPlacement(graph.node(id).op.kind())) continue;
      return absl::FailedPreconditionError(
          absl::StrCat("schedule: ", graph.Label(id), ": the host arranges a state"));
    }
    for (BufferId id : schedule.shards.at(input.tensor)) carries[id] = 0;
  }
  for (size_t t = 0; t < schedule.tasks.size(); ++t) {
    const Task& task = schedule.tasks[t];
    if (!IsCarry(schedule, task)) continue;
    for (BufferId id : task.writes) {
      const auto at = carries.find(id);
      if (at != carries.end() && ++at->second == 1) continue;
      return TaskError(graph, schedule, static_cast<int32_t>(t),
                       absl::StrCat("writes buffer ", id,
                                    at == carries.end() ? ", an input that is no state"
                                                        : ", a state, a second time"));
    }
  }
  for (const auto& [id, count] : carries) {
    if (count == 1) continue;
    return absl::FailedPreconditionError(absl::StrCat("schedule: state buffer ", id, " of ",
                                                      graph.Label(schedule.buffers[id].tensor.node),
                                                      " has no next value"));
  }
  return absl::OkStatus();
}

namespace {

// What the host reads of an output is its shards; of those that are updated before it does, as
// weights are, copies (whose meaning CheckCalls looks at).
absl::Status CheckOutput(const Schedule& schedule, const Graph::NamedOutput& output,
                         const std::vector<bool>& updated) {
  const std::vector<BufferId>& shards = schedule.shards.at(output.tensor);
  const std::vector<BufferId>& read = schedule.OutputShards(output.tensor);
  for (size_t s = 0; s < shards.size(); ++s) {
    const BufferId id = s < read.size() ? read[s] : kNoBuffer;
    const bool exists = id >= 0 && id < static_cast<BufferId>(schedule.buffers.size());
    Buffer shard = schedule.buffers[shards[s]];
    if (id != shards[s]) shard.role = BufferRole::kReceived;
    if (id != shards[s]) shard.moment = kNoMoment;
    std::string wrong;
    if (!exists || read.size() != shards.size() || !(schedule.buffers[id] == shard)) {
      wrong = absl::StrCat("shard ", s, " is not read as it is");
    } else if (updated[id]) {
      wrong = absl::StrCat("shard ", s, " is read after its update");
    }
    if (wrong.empty()) continue;
    return absl::FailedPreconditionError(
        absl::StrCat("schedule: output '", output.name, "': ", wrong));
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status CheckUnloads(const Graph& graph, const Schedule& schedule) {
  std::vector<BufferId> expected, found;
  std::vector<bool> updated(schedule.buffers.size(), false);
  for (const Task& task : schedule.tasks) {
    if (task.phase != Phase::kUpdate) continue;
    for (BufferId id : task.writes) updated[id] = true;
  }
  for (const Graph::NamedOutput& output : OutputsForHost(graph, schedule.options.training)) {
    const TensorType& type = graph.type(output.tensor);
    const std::vector<BufferId>& shards = schedule.OutputShards(output.tensor);
    ISOMER_RETURN_IF_ERROR(CheckOutput(schedule, output, updated));
    for (size_t s = 0; s < shards.size(); ++s) {
      if (static_cast<int64_t>(s) / type.partials % type.copies == 0) expected.push_back(shards[s]);
    }
  }
  const auto expect = [&](const std::vector<BufferId>& ids) {
    expected.insert(expected.end(), ids.begin(), ids.end());
  };
  for (const Schedule::HostTensor& parameter : schedule.parameters) {
    if (schedule.options.keep_gradients) expect(schedule.DistinctGradients(parameter));
    if (schedule.options.training) expect(schedule.DistinctTrained(parameter));
  }
  for (const Task& task : schedule.tasks) {
    if (task.kind != TaskKind::kUnload) continue;
    found.insert(found.end(), task.reads.begin(), task.reads.end());
  }
  std::sort(expected.begin(), expected.end());
  std::sort(found.begin(), found.end());
  if (expected == found) return absl::OkStatus();
  return absl::FailedPreconditionError(
      "schedule: what is unloaded is not the outputs, parameters and gradients asked for");
}

}  // namespace isomer
