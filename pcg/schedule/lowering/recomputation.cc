#include "pcg/schedule/lowering/recomputation.h"

#include <algorithm>
#include <set>
#include <utility>

#include "pcg/schedule/lowering/weight_parts.h"
#include "pcg/schedule/order/pipeline.h"

namespace isomer {

Recomputation::Recomputation(ScheduleBuilder* builder) : builder_(*builder) {
  const Schedule& schedule = builder_.schedule();
  const bool gathers = std::any_of(
      schedule.parameters.begin(), schedule.parameters.end(),
      [&](const Schedule::HostTensor& parameter) { return IsInParts(schedule, parameter); });
  if (schedule.options.recomputed.empty() && !gathers) return;
  writer_.assign(schedule.buffers.size(), -1);
  again_.assign(schedule.buffers.size(), kNoBuffer);
  repeated_by_.assign(schedule.tasks.size(), -1);
  for (size_t t = 0; t < schedule.tasks.size(); ++t) {
    for (BufferId id : schedule.tasks[t].writes) writer_[id] = static_cast<int32_t>(t);
  }
  FindDropped();
}

void Recomputation::FindDropped() {
  const Schedule& schedule = builder_.schedule();
  std::vector<bool> is_recomputed(builder_.graph().num_nodes(), false);
  for (NodeId id : schedule.options.recomputed) is_recomputed[id.value] = true;
  for (const Buffer& buffer : schedule.buffers) {
    const bool computed =
        buffer.role == BufferRole::kActivation || buffer.role == BufferRole::kReceived;
    dropped_.push_back(computed && is_recomputed[buffer.tensor.node.value]);
  }
  // Gathered weights, and what is made from them alone (in another precision).
  std::vector<bool> is_gathered(schedule.buffers.size(), false);
  for (const Task& task : schedule.tasks) {
    if (task.reads.empty()) continue;
    const bool gathered = task.kind == TaskKind::kAllGather
                              ? schedule.buffers[task.reads[0]].role == BufferRole::kParameter
                              : std::all_of(task.reads.begin(), task.reads.end(),
                                            [&](BufferId id) { return is_gathered[id]; });
    for (BufferId id : task.writes) {
      if (gathered) is_gathered[id] = dropped_[id] = true;
    }
  }
  const auto keep = [&](absl::Span<const BufferId> ids) {
    for (BufferId id : ids) dropped_[id] = false;
  };
  for (const auto& [tensor, shards] : schedule.shards) {
    if (is_recomputed[tensor.node.value]) continue;
    for (BufferId id : shards) dropped_[id] = dropped_[id] && is_gathered[id];
  }
  for (const Graph::NamedOutput& output : builder_.graph().outputs()) {
    keep(schedule.shards.at(output.tensor));
  }
  if (schedule.num_moments == 1) return;
  // Not StagesOf: what is interleaved shows when the backward pass is there, too.
  const std::vector<int32_t> group = GroupsOf(schedule);
  for (const Task& task : schedule.tasks) {
    if (CrossesGroups(task, group)) keep(task.writes);
  }
}

BufferId Recomputation::Available(BufferId id) {
  if (dropped_.empty() || !dropped_[id]) return id;
  if (again_[id] != kNoBuffer) return again_[id];
  // What is missing, in the order of the forward pass.
  std::set<int32_t> missing;
  std::vector<BufferId> stack = {id};
  while (!stack.empty()) {
    const BufferId next = stack.back();
    stack.pop_back();
    if (!dropped_[next] || again_[next] != kNoBuffer || !missing.insert(writer_[next]).second) {
      continue;
    }
    const BufferList& reads = builder_.schedule().tasks[writer_[next]].reads;
    stack.insert(stack.end(), reads.begin(), reads.end());
  }
  for (int32_t t : missing) Repeat(t);
  return again_[id];
}

void Recomputation::Repeat(int32_t t) {
  Task task = builder_.schedule().tasks[t];
  task.phase = Phase::kBackward;
  repeated_by_[t] = static_cast<int32_t>(builder_.schedule().tasks.size());
  for (BufferId& id : task.reads) {
    if (dropped_[id]) id = again_[id];
  }
  // What the first saved is of no use to others.
  if (task.kind == TaskKind::kCompute) {
    task.writes.resize(builder_.graph().node(task.node).outputs.size());
    task.bytes = builder_.calls().ForwardWorkOf(task.node).bytes;
  }
  for (BufferId& id : task.writes) {
    Buffer buffer = builder_.buffer(id);
    id = again_[id] = builder_.AddBuffer(std::move(buffer));
  }
  builder_.schedule().tasks.push_back(std::move(task));
}

}  // namespace isomer
