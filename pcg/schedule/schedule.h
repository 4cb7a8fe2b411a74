// The schedule of a mapped graph: what every device does, in which order. One lowering serves the
// simulator (optimizer/) and the runtime, so that what is simulated is what runs.
//
// Buffers hold shards. A buffer belongs to one device and holds a box of a logical tensor, or of
// the gradient of one. Tasks read and write buffers; a communication is one task with a group of
// devices. All devices share one global order of tasks (SPMD): the program of a device is the tasks
// it takes part in, in that order, so matching collectives are met in the same order everywhere.
//
//   phase     tasks
//   load      load (parameter shards and masters, from the host), fill (the optimizer's state, with
//             zeros)
//   forward   feed (input shards, from the host), compute, moves of data
//             local (copies of weights that are outputs), offload (to the host's memory, what the
//             backward pass fetches from there)
//   backward  fill (the loss's gradient), compute_gradient, accumulate, convert, moves of
//   gradients,
//             fetch
//   update    update (by the optimizer, in place), moves of parameters
//   unload    unload (outputs, parameters, and gradients if asked for, to the host)
//
// Moves. Every redistribution, whether parallel operators ask for it or a consumer that lives on
// other devices than its operand, is a set of transfers (from, to): the part that the two boxes
// share is sent, and what a buffer receives is summed. The gradient is the same set with from and
// to exchanged. Each connected set of devices is one task, recognised as a collective where it is
// one, else a resharding:
//
//   chain of parallel operators      forward         gradient
//   Reduce, Replicate                all_reduce      all_reduce
//   Reduce, Partition                reduce_scatter  all_gather
//   Combine, Replicate               all_gather      reduce_scatter
//   Combine(i), Partition(j)         all_to_all      all_to_all
//   anything else                    send_receive    send_receive
//
// A value that several users want is brought to each from where it was made, unless another user
// has it on as many devices. What only outputs of the graph want is moved last; in training behind
// the gradient of what made it, as nothing waits for it, but everything for what is behind it in
// the queue of a link. The loss is such an output: its gradient is filled in on each device that
// makes a part of it (loss_seeds.h).
//
// A task whose windows reach beyond its shard of an operand reads a buffer with the shard and its
// halo (Sharding::OperandBox), filled from all shards that overlap it: a send_receive, whose
// gradient sums the halos' shares into their owners.
//
// A shard that stays where it is costs nothing (both tensors name the same buffer); a slice or
// concatenation on one device is a local task.
//
// Micro-batches. Views with moments (pcg/ir/machine_view.h) give a device several tasks of a node,
// one after the other. Tasks and buffers know which micro-batch they are of; copies at several
// moments of a device are one buffer, so that the micro-batches' shares of a weight's gradient are
// summed where they are made, and only sums are synchronised. A transfer is of the micro-batch that
// receives it; what mixes micro-batches (the last sum of the loss) is of none. pipeline.h puts them
// in order.
//
// Parameters. Operators that only arrange weights (Transpose, Reshape, Concat, Split, casts to a
// float type and parallel operators all of whose ancestors are weights, each used once) run on the
// host at load time. What comes out of them is a stored tensor: kept on the devices, updated in
// place. Optimizers are elementwise, so training the arranged parameters is training the original
// ones. Likewise each device is fed its own part of a partitioned input, and integers that are fed
// (indices) as their users want them arranged. What cheap operators make of constants alone
// (CanRunOnHost), such as masks, is made there once, however often it is used; in inference, of
// weights, too.
//
// Updates. Copies of a parameter's shard are kept equal in several ways (pcg/ir/weight_update.h).
// Each device has its share of the gradient; what it takes to the update, and what comes back:
//   method      backward            update                            update
//   all_reduce  all_reduce          update on all
//   sharded     reduce_scatter      update of a part on each          all_gather of the parts
//   owner       reduce              update on the owner               broadcast
// Sharded weights are parts all the time (weight_parts.h): an all_gather goes before their use.
//
// Without flushes in between (weight_versions.h) a schedule is of several steps.
//
// Low precision. A parameter in bfloat16 or float16 (precision.h casts weights so, on the host) has
// a float32 master wherever it is updated, whole or a part, beside the optimizer's states: updates
// read the master and write both, so that what is gathered or broadcast is of low precision. What
// depends on parameters alone has gradients that are summed in float32, over calls and
// micro-batches; over devices, too, unless UpdateOptions::gradient_sums says otherwise, of plans in
// float32 as well. convert tasks bring a share to the type that its sum has.
//
// Parts are slices along the largest dim that the number of copies divides; where there is none,
// the method is all_reduce. Gradients that become ready one after the other on the same devices are
// synchronised in one task, a bucket; a bucket is closed when it is full or the last of its
// devices' gradients is in it.
#ifndef ISOMER_PCG_SCHEDULE_SCHEDULE_H_
#define ISOMER_PCG_SCHEDULE_SCHEDULE_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "pcg/ir/box.h"
#include "pcg/ir/graph.h"
#include "pcg/ir/plan.h"
#include "pcg/ir/precision.h"
#include "pcg/ir/type_inference.h"
#include "pcg/ir/weight_update.h"
#include "pcg/ir/zero_bubble.h"
#include "pcg/schedule/layout.h"
#include "pcg/support/small_list.h"

namespace isomer {

using BufferId = int32_t;
inline constexpr BufferId kNoBuffer = -1;
// Of no micro-batch in particular.
inline constexpr int32_t kNoMoment = -1;

// Of a task: nearly all have a few.
using BufferList = SmallList<BufferId, 4>;

enum class BufferRole {
  kParameter,  // lives from load to unload
  kInput,      // fed by the host
  kActivation,
  kReceived,  // an operand's shard, on a device that does not own one; or one with its halo
  kSaved,  // what a task leaves for its gradient alone (SavedForGradient), a flat box; its tensor
           // and shard are those of the task's output 0
  kGradient,
  kGradientShard,   // the part of a parameter's gradient that its device updates with
  kParameterShard,  // that part of the parameter, updated, until it is gathered
  kState,           // of the optimizer, for a parameter or a part; lives from load to unload
  kMaster,          // float32, of a parameter in low precision, or a part; likewise
  kOffloaded,       // a value of the forward pass, in the host's memory (memory/offload.h)
};

struct Buffer {
  BufferRole role;
  TensorRef tensor;   // the tensor, or the tensor of whose gradient this is a share
  int32_t shard = 0;  // row-major in [dims.., copies, partials] of the tensor
  int32_t device = 0;
  DataType dtype = DataType::kFloat32;
  Box box;                     // of the logical tensor
  int32_t moment = kNoMoment;  // the micro-batch
  // It holds the sum of so many partials, from the shard's on every `partial_step`-th.
  int32_t partials = 1, partial_step = 1;
  Layout layout = Layout::kRowMajor;
  int64_t bytes() const { return box.Volume() * BytesPerElement(dtype); }
  // The box, its dims as they lie, the outermost first.
  Box in_memory() const { return InMemory(box, layout); }
  friend bool operator==(const Buffer&, const Buffer&) = default;
};

// It lives from load to unload.
inline bool LivesThroughout(BufferRole role) {
  return role == BufferRole::kParameter || role == BufferRole::kState ||
         role == BufferRole::kMaster;
}

enum class Phase { kLoad, kForward, kBackward, kUpdate, kUnload };

enum class TaskKind {
  kLoad,
  kFeed,
  kCompute,          // reads: operands; writes: outputs, what is saved for the gradient if anything
  kComputeGradient,  // reads: operands, outputs, gradients of outputs, what was saved; writes:
                     // gradients of operands
  kFill,             // writes[0] = value
  kAccumulate,       // writes[0] += reads[0], which may be of lower precision
  kConvert,          // writes[0] = reads[0], in another precision
  kLocal,            // transfers on one device
  kAllReduce,        // reads[m], writes[m] belong to devices[m]; so do those of the next three
  kReduceScatter,
  kAllGather,
  kAllToAll,
  kReduce,       // writes[0] belongs to the root, and may be what the root reads
  kBroadcast,    // reads[0] belongs to the root, writes to the other devices, in their order
  kSendReceive,  // transfers between devices
  kUpdate,       // reads: parameter or master, gradient, states; writes: parameter or a part of it,
                 // states, master
  kUnload,
  kOffload,  // writes[0], in the host's memory, = reads[0], in the device's
  kFetch,    // the reverse
};

const char* PhaseName(Phase phase);
const char* TaskKindName(TaskKind kind);
// all_reduce .. send_receive: tasks of several devices.
bool IsCommunication(TaskKind kind);
// Between the memories of a device and of its host.
inline bool IsHostCopy(TaskKind kind) {
  return kind == TaskKind::kOffload || kind == TaskKind::kFetch;
}
// What a kernel does: compute, compute_gradient.
inline bool IsOfKernel(TaskKind kind) {
  return kind == TaskKind::kCompute || kind == TaskKind::kComputeGradient;
}

struct Task {
  TaskKind kind;
  Phase phase;
  NodeId node;         // the operator it is part of
  int32_t shard = -1;  // compute, compute_gradient: which task of the node (shard of output 0)
  int32_t moment = kNoMoment;          // the micro-batch
  int32_t step = 0;                    // of those between two flushes (weight_versions.h)
  SmallList<int32_t, 4> devices = {};  // one, or the group of a communication, ascending
  // Collectives: how many buffers each member brings; they travel as one, side by side. Buffer i of
  // member m is reads[m * segments + i], likewise of writes; the root's lists hold just its own.
  // Updates: how many weights are updated, all with masters or none. Operand o of weight i is
  // reads[o * segments + i] (the weight or its master, its gradient, its states), likewise of
  // writes (the weight or a part of it, its states, its master).
  int32_t segments = 1;
  // A compute_gradient has kNoBuffer for values it does not need and gradients nobody wants.
  BufferList reads = {}, writes = {};
  // kLocal, kSendReceive: (index in reads, index in writes). The box both share is moved; a write
  // is the sum of what it receives, zero elsewhere.
  SmallList<std::pair<int32_t, int32_t>, 2> transfers = {};
  double value = 0;  // kFill
  // Compute, compute_gradient: nothing is done, for what is written lies where what is read does
  // (views.h); accumulate, convert: the call that made what is read has done it (additions.h).
  bool is_view = false;
  // Compute_gradient: bit w, of the first kMostAdditions: writes[w] lies where a sum does, and what
  // is computed is added to that (additions.h).
  uint32_t adds = 0;
  // Of a communication: it sums gradients of weights, or gathers or spreads weights. What computes
  // waits for it late in the step or not at all, so it does not hold up what computes wait for at
  // once: programs have a queue for each (program.h).
  bool of_weights = false;
  // Of a kernel: bytes that it uses while it runs, beside its buffers. Not the lowering's to say:
  // set by who has the kernels, or an estimate of them, before memory is planned.
  int64_t workspace_bytes = 0;
  double flops = 0;
  int32_t whole = -1;  // in Schedule::wholes, if it is less than all devices' task
  // Of one device: compute: bytes of everything read and written. all_reduce: of the buffer;
  // all_gather: of the result; reduce_scatter, all_to_all, reduce, broadcast: of the operand; of
  // all segments. send_receive: bytes that cross between devices, in total.
  int64_t bytes = 0;
  SmallList<int32_t, 4> deps = {};  // earlier tasks that must be done; ascending
};

inline constexpr size_t kMostAdditions = 32;
inline bool Adds(const Task& task, size_t w) {
  return w < kMostAdditions && ((task.adds >> w) & 1) != 0;
}

// A device runs a kernel for it.
inline bool RunsKernel(const Task& task) { return IsOfKernel(task.kind) && !task.is_view; }

// In which order a pipeline stage works through micro-batches.
enum class PipelineOrder {
  kOneForwardOneBackward,  // 1F1B: as few activations as keep later stages busy
  kAllForwardFirst,        // GPipe
};

struct ScheduleOptions {
  bool training = true;
  int64_t num_devices = 1;
  std::string loss;  // the graph output to minimise; needed for training
  // Gradient of the loss; gradients are that many times what they are, and the update, and whoever
  // reads them, divides by it.
  double seed = 1;
  UpdateOptions update = {.bucket_bytes = 0};  // Plans have buckets (LowerPlan).
  PipelineOrder order = PipelineOrder::kOneForwardOneBackward;
  ZeroBubble zero_bubble = {};   // splits: in place of `order`
  bool spread_branches = false;  // execution_order.h; of plans
  // The host feeds indices as they are wanted. Not of a call alone, whose operands others make.
  bool arranges_inputs = true;
  // Gradients of stored tensors are kept to the end and unloaded.
  bool keep_gradients = false;
  // Of a schedule of fewer micro-batches than a step has, which stand for all (class_schedule.h):
  // how many those are. Their order is that of all (pipeline.h). 0: it has all.
  int32_t moments_of_step = 0;
  // Nodes whose results training does not keep for the backward pass; ascending.
  std::vector<NodeId> recomputed = {};
  // Nodes whose results lie in the host's memory until the backward pass needs them; ascending.
  std::vector<NodeId> offloaded = {};
  // Per node, of how many times smaller a shard each of its shards counts when buckets are filled;
  // empty: 1.
  std::vector<int64_t> shrink = {};
};

struct Schedule {
  ScheduleOptions options;
  std::vector<Buffer> buffers;
  std::vector<Task> tasks;                     // in global order
  std::vector<std::vector<int32_t>> programs;  // per device: its tasks, ascending
  int32_t num_moments = 1;                     // micro-batches, of all steps
  // Several steps between two flushes (weight_versions.h): for each the buffers that are in it what
  // those of one step are, by number; empty: there is one. All else names those of the first.
  std::vector<std::vector<BufferId>> in_step;
  int32_t num_steps() const { return in_step.empty() ? 1 : static_cast<int32_t>(in_step.size()); }
  BufferId InStep(BufferId id, int32_t step) const {
    return in_step.empty() || id == kNoBuffer ? id : in_step[step][id];
  }
  // Shards of every tensor that has buffers, in row-major order of [dims.., copies, partials].
  // Copies on one device are one buffer.
  std::map<TensorRef, std::vector<BufferId>> shards;
  // Training: of outputs of the graph that are weights, per shard a copy of what the forward pass
  // used (lowering/output_copies.h).
  std::map<TensorRef, std::vector<BufferId>> output_copies;
  // Where an output of the graph is when the step is over. REQUIRES: it has shards.
  const std::vector<BufferId>& OutputShards(TensorRef output) const {
    const auto copies = output_copies.find(output);
    return copies == output_copies.end() ? shards.at(output) : copies->second;
  }
  // Per node: how a call is spread over tasks; empty for leaves and parallel operators.
  std::vector<std::optional<Sharding>> shardings;

  // A tensor whose value the host sets: parameters before the first step, inputs before each.
  // The host evaluates the graph from leaves to `tensor` (HostNodes are the operators in between).
  struct HostTensor {
    TensorRef tensor;
    std::vector<NodeId> leaves = {};
    std::vector<NodeId> operators = {};  // in topological order
    // Parameters: per shard, the buffer in which its device stores it: the shard's, or one with a
    // part of it (sharded weights). Micro-batches, and so copies on one device, have one.
    std::vector<BufferId> stored = {};
    // Parameters: per shard, where its device has the weights that are trained: what it stores; or
    // the master of that or of a part, or kNoBuffer (owner: another device).
    std::vector<BufferId> trained = {};
    // Training, parameters: per shard, the gradient that its device updates with: whole, a part
    // (sharded), or kNoBuffer (owner: another device; or the loss does not depend on it).
    std::vector<BufferId> gradients = {};
    bool trainable = true;                           // parameters: no leaf is a constant
    UpdateMethod update = UpdateMethod::kAllReduce;  // what became of the method asked for
  };
  std::vector<HostTensor> parameters, inputs;
  // Of buffers of one tensor without partials, those that hold every element once.
  std::vector<BufferId> Distinct(const std::vector<BufferId>& ids) const;
  // Of a parameter and of its gradients: what is unloaded.
  std::vector<BufferId> DistinctTrained(const HostTensor& parameter) const {
    return Distinct(parameter.trained);
  }
  std::vector<BufferId> DistinctGradients(const HostTensor& parameter) const {
    return Distinct(parameter.gradients);
  }
  // A schedule may be of some devices that stand for all (class_schedule.h). Then these are there,
  // ascending; empty: all are.
  std::vector<int32_t> represented;
  // What such a task of several devices is in the schedule of all.
  struct Whole {
    std::vector<int32_t> devices;  // ascending
    // kSendReceive: how many like it a transfer's receiver gets, and its sender sends; and how many
    // receivers, and senders, of its node each of the two stands for. Empty: one.
    struct Count {
      int64_t received = 1, sent = 1;
      int64_t receivers = 1, senders = 1;
      int64_t most() const { return received > sent ? received : sent; }
      friend auto operator<=>(const Count&, const Count&) = default;
    };
    std::vector<Count> counts;
    friend bool operator==(const Whole&, const Whole&) = default;
  };
  std::vector<Whole> wholes;
  // The devices of a task, those included that are not there.
  absl::Span<const int32_t> GroupOf(const Task& task) const {
    return task.whole < 0 ? absl::MakeConstSpan(task.devices) : wholes[task.whole].devices;
  }
  Whole::Count CountOf(const Task& task, size_t transfer) const {
    if (task.whole < 0 || wholes[task.whole].counts.empty()) return {};
    return wholes[task.whole].counts[transfer];
  }
  int64_t num_represented() const {
    return represented.empty() ? options.num_devices : static_cast<int64_t>(represented.size());
  }

  std::string ToString(const Graph& graph) const;
};

// Of `list`, which is the task's reads or writes, what belongs to a segment, in order.
std::vector<BufferId> OfSegment(const Task& task, const BufferList& list, size_t segment);

// By which UpdateOptions names a parameter: of what several weights are arranged into, the first.
const std::string& NameOf(const Graph& graph, const Schedule::HostTensor& parameter);

// Views that put every shard on device 0. REQUIRES: no tensor of `graph` is parallel.
std::vector<MachineView> SequentialViews(const Graph& graph);

}  // namespace isomer

#endif  // ISOMER_PCG_SCHEDULE_SCHEDULE_H_
