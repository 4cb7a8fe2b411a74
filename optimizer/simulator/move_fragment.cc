#include "optimizer/simulator/move_fragment.h"

#include <algorithm>
#include <map>

#include "absl/strings/str_cat.h"
#include "optimizer/sharding/expansion.h"
#include "optimizer/simulator/simulator.h"
#include "pcg/schedule/lowering/redistribution.h"
#include "pcg/support/status_macros.h"

namespace isomer {
namespace {

std::vector<int32_t> DevicesOfBuffers(const Schedule& schedule, absl::Span<const BufferId> ids) {
  std::vector<int32_t> devices;
  for (BufferId id : ids) devices.push_back(schedule.buffers[id].device);
  return devices;
}

MoveTask MoveTaskOf(const CostModel& cost, const ScheduleBuilder& builder, const Task& task) {
  const Schedule& schedule = builder.schedule();
  MoveTask move;
  const TaskTime time = TimeOfTask(cost, builder.graph(), schedule, task);
  move.duration = PicosecondsOf(time.us);
  move.beyond_links = PicosecondsOf(time.beyond_links_us);
  move.communicates = IsCommunication(task.kind);
  AppendQueues(cost, schedule, task, &move.queues);
  move.reads = DevicesOfBuffers(schedule, task.reads);
  move.writes = DevicesOfBuffers(schedule, task.writes);
  return move;
}

// The transfers of a task with source and destination exchanged; every collective counts as
// all-to-all.
std::vector<Transfer> Reversed(const Task& task, std::map<BufferId, BufferId>* gradients,
                               ScheduleBuilder* builder) {
  auto gradient_of = [&](BufferId id) {
    auto [it, added] = gradients->try_emplace(id, kNoBuffer);
    if (added) it->second = builder->AddGradientBuffer(id);
    return it->second;
  };
  std::vector<Transfer> reversed;
  for (const Transfer& t : TransfersOf(task)) {
    reversed.push_back({gradient_of(t.to), gradient_of(t.from)});
  }
  return reversed;
}

// The forward moves among the tasks of `builder` that satisfy `chosen`.
template <typename Chosen>
MoveFragment FragmentOfMoves(const CostModel& cost, bool training, ScheduleBuilder* builder,
                             Chosen chosen) {
  MoveFragment fragment;
  std::vector<Task> forward;
  for (const Task& task : builder->schedule().tasks) {
    if (task.kind != TaskKind::kLocal && !IsCommunication(task.kind)) continue;
    if (!chosen(task)) continue;
    forward.push_back(task);
    fragment.forward.push_back(MoveTaskOf(cost, *builder, task));
    for (BufferId id : task.writes) {
      const Buffer& buffer = builder->buffer(id);
      fragment.received.push_back(
          {buffer.device,
           PicosecondsOf(
               cost.ElementwiseTime(TaskKind::kAccumulate, 3 * buffer.bytes(), buffer.device).us),
           PicosecondsOf(cost.AddingUs(buffer.bytes(), buffer.device))});
      absl::StrAppend(&fragment.signature, buffer.device, buffer.box.ToString());
    }
  }
  if (!training) return fragment;
  for (auto task = forward.rbegin(); task != forward.rend(); ++task) {
    std::map<BufferId, BufferId> gradients;
    const size_t first = builder->schedule().tasks.size();
    builder->AddTransfers(Reversed(*task, &gradients, builder), Phase::kBackward, task->node);
    for (size_t t = first; t < builder->schedule().tasks.size(); ++t) {
      fragment.backward.push_back(MoveTaskOf(cost, *builder, builder->schedule().tasks[t]));
    }
  }
  return fragment;
}

}  // namespace

void LowerMove(TensorRef from, TensorRef to, absl::Span<const int64_t> from_devices,
               absl::Span<const int64_t> to_devices, ScheduleBuilder* builder) {
  const TensorType &from_type = builder->graph().type(from), &to_type = builder->graph().type(to);
  std::vector<BufferId>& shards = builder->schedule().shards[from];
  for (size_t s = 0; s < from_devices.size(); ++s) {
    shards.push_back(
        builder->AddShard(BufferRole::kActivation, from, static_cast<int64_t>(s), from_devices[s]));
  }
  std::vector<ShardSource> sources;
  for (size_t s = 0; s < to_devices.size(); ++s) {
    const int64_t partial = CoordinatesOfShard(to_type, static_cast<int64_t>(s)).partial;
    sources.push_back(SourceInChain(from, from_type, to_type.partials, partial));
  }
  Redistribute(builder, sources, to, to_devices);
}

absl::StatusOr<MoveFragment> ChainFragment(const CostModel& cost, const Placement& from,
                                           const Placement& to, bool training) {
  Graph graph;
  const TensorRef x = graph.AddInput("x", from.type), y = graph.AddInput("y", to.type);
  const std::vector<MachineView> views = {from.view, to.view};
  ScheduleOptions options;
  options.num_devices = cost.machine().num_devices();
  ScheduleBuilder builder(graph, views, options);
  ISOMER_ASSIGN_OR_RETURN(const std::vector<int64_t> from_devices, builder.Devices(x.node));
  ISOMER_ASSIGN_OR_RETURN(const std::vector<int64_t> to_devices, builder.Devices(y.node));
  LowerMove(x, y, from_devices, to_devices, &builder);
  MoveFragment fragment =
      FragmentOfMoves(cost, training, &builder, [](const Task&) { return true; });
  for (BufferId id : builder.schedule().shards.at(y)) {
    if (builder.buffer(id).tensor == x) fragment.stays.push_back(builder.buffer(id).device);
  }
  return fragment;
}

absl::StatusOr<CallFragment> FragmentOfCall(const CostModel& cost, const Operator& op,
                                            absl::Span<const Placement> operands,
                                            const MachineView& output_view,
                                            const std::vector<bool>& wanted, bool stored) {
  std::vector<TensorType> types;
  std::vector<MachineView> views;
  for (const Placement& operand : operands) {
    types.push_back(operand.type);
    views.push_back(operand.view);
  }
  views.push_back(output_view);
  ISOMER_ASSIGN_OR_RETURN(const Graph graph, GraphOfCall(op, types));
  ISOMER_ASSIGN_OR_RETURN(const Sharding sharding, InferSharding(op, types));
  ScheduleOptions options;
  options.num_devices = cost.machine().num_devices();
  options.arranges_inputs = false;
  ScheduleBuilder builder(graph, views, options);
  ISOMER_RETURN_IF_ERROR(LowerForward(&builder, /*interleave=*/false));
  CallFragment fragment;
  fragment.keeps_order = CostModel::IsView(op, types);
  const bool training = std::find(wanted.begin(), wanted.end(), true) != wanted.end();
  std::map<int, Picoseconds> gradient;  // by kind of device
  const bool is_view = !stored && fragment.keeps_order;
  const int64_t saved_bytes = SavedBytes(op, sharding, types);
  for (Task& task : builder.schedule().tasks) {
    if (task.kind != TaskKind::kCompute) continue;
    const int32_t device = task.devices[0];
    fragment.devices.push_back(device);
    const auto duration = [&] {
      return is_view ? 0 : PicosecondsOf(TimeOfTask(cost, graph, builder.schedule(), task).us);
    };
    fragment.forward.push_back(duration());
    if (!training) continue;
    task.bytes += saved_bytes;
    fragment.saving.push_back(duration());
    auto [it, added] = gradient.try_emplace(cost.machine().kind_index(device));
    if (added) {
      const Work work = GradientWork(op, sharding, types, wanted);
      if (!is_view) it->second = PicosecondsOf(cost.CallTime(op, types, wanted, work, device).us);
    }
    fragment.gradient.push_back(it->second);
  }
  for (int o = 0; o < static_cast<int>(operands.size()); ++o) {
    // Only tasks of this operand's moves: those added for other operands write gradients, too.
    fragment.arrivals.push_back(
        FragmentOfMoves(cost, training && wanted[o], &builder, [&](const Task& task) {
          const Buffer& buffer = builder.buffer(task.writes[0]);
          return buffer.role == BufferRole::kReceived && buffer.tensor.node.value == o;
        }));
  }
  return fragment;
}

}  // namespace isomer
