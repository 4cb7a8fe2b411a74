// The parts of the lowering share a schedule under construction. Internal to pcg/schedule.
#ifndef ISOMER_PCG_SCHEDULE_LOWERING_BUILDER_H_
#define ISOMER_PCG_SCHEDULE_LOWERING_BUILDER_H_

#include <cstdint>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "pcg/ir/graph.h"
#include "pcg/ir/plan.h"
#include "pcg/schedule/lowering/call_table.h"
#include "pcg/schedule/schedule.h"

namespace isomer {

// The box that both buffers share goes from `from` to `to`.
struct Transfer {
  BufferId from, to;
};
// Of a task that moves data; in a collective every operand goes to every result.
std::vector<Transfer> TransfersOf(const Task& task);

class ScheduleBuilder {
 public:
  ScheduleBuilder(const Graph& graph, absl::Span<const MachineView> views,
                  const ScheduleOptions& options);

  const Graph& graph() const { return graph_; }
  const ScheduleOptions& options() const { return schedule_.options; }
  Schedule& schedule() { return schedule_; }
  const Schedule& schedule() const { return schedule_; }
  // Of the graph, as far as they were lowered.
  CallTable& calls() { return calls_; }
  const Buffer& buffer(BufferId id) const { return schedule_.buffers[id]; }

  // The device of every shard of an output of `node`. The error names the node.
  absl::StatusOr<std::vector<int64_t>> Devices(NodeId node) const;
  // The micro-batch of every shard; empty if the node's view has none. REQUIRES: Devices is ok.
  std::vector<int32_t> Moments(NodeId node) const;
  int64_t NumMomentsOf(NodeId node) const { return NumMoments(views_[node.value]); }

  BufferId AddBuffer(Buffer buffer);
  // A buffer for a shard of `tensor`.
  BufferId AddShard(BufferRole role, TensorRef tensor, int64_t shard, int64_t device,
                    int32_t moment = kNoMoment);
  // A buffer like `like` for a share of its gradient, of the same micro-batch if it is of one, else
  // of `moment`.
  BufferId AddGradientBuffer(BufferId like, int32_t moment = kNoMoment);
  // In what gradients of weights are summed over devices.
  DataType gradient_sums() const { return options().update.gradient_sums; }
  // The gradient `id` in `dtype`: itself, or what a new task converts it to.
  BufferId Converted(BufferId id, DataType dtype, NodeId node);
  // Another micro-batch has the buffer, too.
  void ShareBuffer(BufferId id, int32_t moment);
  // A task of one device.
  Task& AddTask(TaskKind kind, Phase phase, NodeId node, int32_t device, BufferList reads,
                BufferList writes);
  // One task for each set of devices that the transfers to a micro-batch connect, in order of
  // micro-batches and of their first device.
  void AddTransfers(const std::vector<Transfer>& transfers, Phase phase, NodeId node);

 private:
  void AddTransfersOfMoment(const std::vector<Transfer>& transfers, Phase phase, NodeId node);
  void AddConnectedTransfers(const std::vector<Transfer>& transfers, Phase phase, NodeId node);

  const Graph& graph_;
  absl::Span<const MachineView> views_;
  CallTable calls_;
  Schedule schedule_;
};

// Which collective a connected set of transfers is: kAllReduce, kReduceScatter, kAllGather,
// kAllToAll, or kSendReceive if none. `reads` and `writes` are in order of devices.
TaskKind RecogniseCollective(const std::vector<Buffer>& buffers, absl::Span<const BufferId> reads,
                             absl::Span<const BufferId> writes, size_t num_transfers);

// Which tensors the host sets, and the forward tasks.
absl::Status LowerForward(ScheduleBuilder* builder, bool interleave);
// The tasks that give the gradients of all parameters; `updates` is told when one is complete.
class UpdateLowering;
absl::Status LowerBackward(ScheduleBuilder* builder, UpdateLowering* updates);

}  // namespace isomer

#endif  // ISOMER_PCG_SCHEDULE_LOWERING_BUILDER_H_
