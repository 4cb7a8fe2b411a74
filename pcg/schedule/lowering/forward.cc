// Forward lowering: what the host sets, compute tasks, and moves of data between them.
#include <algorithm>
#include <map>
#include <set>

#include "absl/strings/str_cat.h"
#include "pcg/ir/operator_facts.h"
#include "pcg/ir/states.h"
#include "pcg/profile/work.h"
#include "pcg/schedule/lowering/arrival.h"
#include "pcg/schedule/lowering/builder.h"
#include "pcg/schedule/lowering/redistribution.h"
#include "pcg/schedule/lowering/weight_homes.h"
#include "pcg/schedule/lowering/weight_parts.h"
#include "pcg/schedule/order/execution_order.h"
#include "pcg/support/check.h"
#include "pcg/support/status_macros.h"

namespace isomer {
namespace {

class ForwardLowering {
 public:
  ForwardLowering(ScheduleBuilder* builder, bool interleave)
      : builder_(*builder),
        interleave_(interleave),
        graph_(builder->graph()),
        order_(graph_.TopologicalOrder()),
        arrivals_(builder),
        parts_(builder),
        homes_(builder, order_),
        states_(builder->options().training ? std::vector<State>() : StatesOf(graph_)),
        place_(graph_.num_nodes(), -1) {
    for (size_t i = 0; i < order_.size(); ++i) place_[order_[i].value] = static_cast<int32_t>(i);
  }

  absl::Status Run();

 private:
  void CountUses();
  int UsesOf(TensorRef tensor) const {
    auto found = uses_.find(tensor);
    return found == uses_.end() ? 0 : found->second;
  }
  void FindHostOperators();
  bool IsHostOperator(NodeId id, HostLeaves leaves) const;
  bool IsHostTensor(TensorRef tensor) const { return on_host_[tensor.node.value]; }
  Schedule::HostTensor HostTensorOf(TensorRef tensor) const;
  absl::StatusOr<bool> StoreInParts(Schedule::HostTensor* host);
  absl::Status AddHostTensor(TensorRef tensor);

  // Its operand is of other micro-batches than its result. (Copies of what is of none are the same
  // for each.)
  bool MixesMoments(NodeId id) const {
    const int64_t before = builder_.NumMomentsOf(graph_.node(id).inputs[0].node);
    if (graph_.node(id).op.kind() == OpKind::kReplicate && before == 1) return false;
    return builder_.NumMomentsOf(id) != before;
  }
  // A unary parallel operator of the step.
  bool IsInChain(NodeId id) const {
    const OpKind kind = graph_.node(id).op.kind();
    return IsParallel(kind) && kind != OpKind::kConcatPartials && !on_host_[id.value];
  }
  // Its operand's partials are several micro-batches', its own are not.
  bool SumsMoments(NodeId id) const {
    return graph_.node(id).op.kind() == OpKind::kReduce && MixesMoments(id);
  }
  void FindFusedOperators();
  TensorRef NextOf(const State& state) const;
  absl::StatusOr<std::vector<State>> StatesInOrder() const;
  absl::Status LowerStates();
  size_t NumDevices(NodeId id) const;
  TensorRef ChainStart(NodeId id) const;
  std::vector<bool> DeviceMoves() const;
  std::vector<NodeId> OrderOfDevices() const;
  absl::Status LowerParallel(NodeId id);
  absl::Status LowerCompute(NodeId id);
  void ShareCall(NodeId id, size_t shard, int32_t moment, size_t t);

  ScheduleBuilder& builder_;
  const bool interleave_;
  const Graph& graph_;
  const std::vector<NodeId> order_;
  std::map<TensorRef, int> uses_;               // by live nodes and graph outputs
  std::vector<std::vector<Graph::Use>> users_;  // by node, if anything is stored in parts
  std::vector<bool> on_host_;  // by node: a leaf, or an operator that the host runs
  std::vector<bool> fused_;    // by node: a parallel operator inside of a chain
  Arrivals arrivals_;
  WeightParts parts_;
  WeightHomes homes_;
  const std::vector<State> states_;
  std::vector<int32_t> place_;  // by node: in order_
};

void ForwardLowering::CountUses() {
  for (NodeId id : order_) {
    for (TensorRef input : graph_.node(id).inputs) ++uses_[input];
  }
  for (const Graph::NamedOutput& output : graph_.outputs()) ++uses_[output.tensor];
}

bool ForwardLowering::IsHostOperator(NodeId id, HostLeaves leaves) const {
  const Node& node = graph_.node(id);
  const bool training = builder_.options().training;
  bool integers = true, once = true;
  for (TensorRef input : node.inputs) {
    if (!IsHostTensor(input)) return false;
    integers &= !IsFloat(graph_.type(input).dtype);
    // What is trained must be updated in one place.
    once &= (UsesOf(input) == 1 && !homes_.IsHome(input)) || homes_.LeadsHome(id);
  }
  const bool stored = leaves == HostLeaves::kWeights || leaves == HostLeaves::kConstants;
  if (IsPlacement(node.op.kind())) return !stored || !training || once;
  if (leaves == HostLeaves::kInputs && !builder_.options().arranges_inputs) return false;
  return IsMadeOnHost(node.op, leaves, integers, once, training);
}

void ForwardLowering::FindHostOperators() {
  on_host_.assign(graph_.num_nodes(), false);
  std::vector<HostLeaves> leaves(graph_.num_nodes(), HostLeaves::kOther);
  for (NodeId id : order_) {
    const Node& node = graph_.node(id);
    HostLeaves& of = leaves[id.value];
    if (IsLeaf(node.op.kind())) {
      on_host_[id.value] = true;
      of = LeavesOf(node.op.kind());
      continue;
    }
    of = leaves[node.inputs[0].node.value];
    for (TensorRef input : node.inputs) {
      of = Together(of, leaves[input.node.value], builder_.options().training);
    }
    on_host_[id.value] = IsHostOperator(id, of);
    if (!on_host_[id.value]) of = HostLeaves::kOther;
  }
}

Schedule::HostTensor ForwardLowering::HostTensorOf(TensorRef tensor) const {
  Schedule::HostTensor host{.tensor = tensor};
  std::set<std::pair<int32_t, NodeId>> seen;  // by place in the topological order
  std::vector<NodeId> stack = {tensor.node};
  while (!stack.empty()) {
    const NodeId id = stack.back();
    stack.pop_back();
    if (!seen.emplace(place_[id.value], id).second) continue;
    for (TensorRef input : graph_.node(id).inputs) stack.push_back(input.node);
  }
  for (const auto& [place, id] : seen) {
    (IsLeaf(graph_.node(id).op.kind()) ? host.leaves : host.operators).push_back(id);
  }
  return host;
}

// False if it is none that is to be, or can be.
absl::StatusOr<bool> ForwardLowering::StoreInParts(Schedule::HostTensor* host) {
  if (builder_.options().update.method != UpdateMethod::kShardedWeights &&
      builder_.options().update.methods.empty()) {
    return false;
  }
  if (users_.empty()) users_ = graph_.Users();
  std::vector<NodeId> users;
  for (const Graph::Use& use : users_[host->tensor.node.value]) users.push_back(use.user);
  if (homes_.IsHome(host->tensor)) return false;  // Others read it who are no users.
  // An output of the graph has a use that is no node.
  if (static_cast<int>(users.size()) != UsesOf(host->tensor)) return false;
  if (!IsStored(graph_.node(host->leaves[0]).op.kind())) return false;
  ISOMER_ASSIGN_OR_RETURN(const bool in_parts, parts_.Store(users, host));
  if (!in_parts) return false;
  host->gradients.assign(host->stored.size(), kNoBuffer);
  host->trained = host->stored;
  builder_.schedule().parameters.push_back(std::move(*host));
  return true;
}

absl::Status ForwardLowering::AddHostTensor(TensorRef tensor) {
  Schedule::HostTensor host = HostTensorOf(tensor);
  const OpKind leaf = graph_.node(host.leaves[0]).op.kind();
  const bool is_parameter = IsStored(leaf);
  host.trainable = leaf == OpKind::kWeight;
  if (graph_.type(tensor).partials != 1) {
    return absl::InvalidArgumentError(absl::StrCat(graph_.Label(tensor.node), ": ",
                                                   graph_.type(tensor).ToString(),
                                                   " comes from the host as partial sums"));
  }
  ISOMER_ASSIGN_OR_RETURN(const bool in_parts, StoreInParts(&host));
  if (in_parts) return absl::OkStatus();
  ISOMER_ASSIGN_OR_RETURN(std::vector<int64_t> devices, builder_.Devices(tensor.node));
  const std::vector<int32_t> moments = builder_.Moments(tensor.node);
  std::vector<BufferId> shards;
  OneOfCopies copies(graph_.type(tensor));
  for (size_t s = 0; s < devices.size(); ++s) {
    if (!moments.empty()) {
      if (const size_t first = copies.FirstAt(devices[s], s); first != s) {
        shards.push_back(shards[first]);
        builder_.ShareBuffer(shards.back(), moments[s]);
        continue;
      }
    }
    shards.push_back(builder_.AddShard(is_parameter ? BufferRole::kParameter : BufferRole::kInput,
                                       tensor, static_cast<int64_t>(s), devices[s],
                                       moments.empty() ? kNoMoment : moments[s]));
    builder_.AddTask(is_parameter ? TaskKind::kLoad : TaskKind::kFeed,
                     is_parameter ? Phase::kLoad : Phase::kForward, tensor.node,
                     static_cast<int32_t>(devices[s]), {}, {shards.back()});
  }
  host.gradients.assign(is_parameter ? shards.size() : 0, kNoBuffer);
  if (is_parameter) host.stored = host.trained = shards;
  builder_.schedule().shards[tensor] = std::move(shards);
  (is_parameter ? builder_.schedule().parameters : builder_.schedule().inputs)
      .push_back(std::move(host));
  return absl::OkStatus();
}

void ForwardLowering::FindFusedOperators() {
  fused_.assign(graph_.num_nodes(), false);
  for (NodeId id : order_) {
    if (!IsInChain(id)) continue;
    const NodeId input = graph_.node(id).inputs[0].node;
    if (IsInChain(input) && UsesOf({input, 0}) == 1 && !MixesMoments(id) && !MixesMoments(input)) {
      fused_[input.value] = true;
    }
  }
  // Nor need a state that only the next step uses be whole.
  for (const State& state : states_) {
    const NodeId last = NextOf(state).node;
    for (NodeId id = state.next.node; id != last; id = graph_.node(id).inputs[0].node) {
      fused_[id.value] = true;
    }
  }
  // What is whole in between, of no micro-batch, need not be made if both ends have micro-batches:
  // each is of the same samples at both.
  for (NodeId id : order_) {
    if (!IsInChain(id) || builder_.NumMomentsOf(id) == 1) continue;
    std::vector<NodeId> inside;
    NodeId at = id;
    while (!SumsMoments(at)) {
      const NodeId input = graph_.node(at).inputs[0].node;
      if (builder_.NumMomentsOf(input) == builder_.NumMomentsOf(id)) {
        for (NodeId whole : inside) fused_[whole.value] = true;
        break;
      }
      if (!IsInChain(input) || UsesOf({input, 0}) != 1) break;
      inside.push_back(input);
      at = input;
    }
  }
}

// The next value of a state before it is put together for an output: the step's last word on it.
TensorRef ForwardLowering::NextOf(const State& state) const {
  TensorRef next = state.next;
  while (IsInChain(next.node) && !SumsMoments(next.node) && UsesOf(next) == 1) {
    next = graph_.node(next.node).inputs[0];
  }
  return next;
}

// Those whose inputs others take their next values from come behind these.
absl::StatusOr<std::vector<State>> ForwardLowering::StatesInOrder() const {
  std::vector<State> pending = states_, order;
  const auto reads = [this](const State& state, NodeId input) {
    const TensorRef next = NextOf(state);
    if (!on_host_[next.node.value]) return false;
    const std::vector<NodeId> leaves = HostTensorOf(next).leaves;
    return std::find(leaves.begin(), leaves.end(), input) != leaves.end();
  };
  while (!pending.empty()) {
    const auto free = std::find_if(pending.begin(), pending.end(), [&](const State& state) {
      return std::none_of(pending.begin(), pending.end(), [&](const State& other) {
        return &other != &state && reads(other, state.input);
      });
    });
    if (free == pending.end()) {
      return absl::UnimplementedError(absl::StrCat(
          "states take their next values from each other, '", pending[0].name, "' among them"));
    }
    order.push_back(*free);
    pending.erase(free);
  }
  return order;
}

// What a state is after the step goes to where its input lies.
absl::Status ForwardLowering::LowerStates() {
  if (states_.empty()) return absl::OkStatus();
  ISOMER_RETURN_IF_ERROR(CheckStates(graph_));
  ISOMER_ASSIGN_OR_RETURN(const std::vector<State> states, StatesInOrder());
  for (const State& state : states) {
    for (const Schedule::HostTensor& input : builder_.schedule().inputs) {
      if (std::find(input.leaves.begin(), input.leaves.end(), state.input) == input.leaves.end()) {
        continue;
      }
      for (NodeId id : input.operators) {
        if (IsPlacement(graph_.node(id).op.kind())) continue;
        return absl::UnimplementedError(absl::StrCat(graph_.Label(id),
                                                     ": the host arranges state '", state.name,
                                                     "', which stays on the devices"));
      }
      MoveTo(&builder_, NextOf(state), input.tensor);
    }
  }
  return absl::OkStatus();
}

std::vector<bool> ForwardLowering::DeviceMoves() const {
  std::vector<bool> moves(graph_.num_nodes(), false);
  for (NodeId id : order_) {
    moves[id.value] = IsParallel(graph_.node(id).op.kind()) && !on_host_[id.value];
  }
  return moves;
}

size_t ForwardLowering::NumDevices(NodeId id) const {
  const auto devices = builder_.Devices(id);
  if (!devices.ok()) return 0;
  return std::set<int64_t>(devices->begin(), devices->end()).size();
}

// What the chain that ends with `id` moves. One that leads to several users may have been made
// whole for one of them, on fewer devices than had it and than want it: then what others want of it
// does not go through those, which would send all of it again.
TensorRef ForwardLowering::ChainStart(NodeId id) const {
  const auto behind_fused = [this](TensorRef at) {
    while (fused_[at.node.value]) at = graph_.node(at.node).inputs[0];
    return at;
  };
  TensorRef start = behind_fused(graph_.node(id).inputs[0]);
  while (IsInChain(start.node) && !MixesMoments(start.node) && !MixesMoments(id)) {
    const TensorRef before = behind_fused(graph_.node(start.node).inputs[0]);
    const size_t here = NumDevices(start.node);
    if (here >= NumDevices(before.node) || here >= NumDevices(id)) break;
    start = before;
  }
  return homes_.Of(start);
}

// What only outputs of the graph wait for comes last; but gradients begin at the loss.
std::vector<NodeId> ForwardLowering::OrderOfDevices() const {
  std::set<TensorRef> awaited;
  for (NodeId id : order_) {
    if (on_host_[id.value] || fused_[id.value]) continue;
    const std::vector<TensorRef>& inputs = graph_.node(id).inputs;
    if (IsInChain(id)) {
      awaited.insert(ChainStart(id));
    } else {
      awaited.insert(inputs.begin(), inputs.end());
    }
  }
  for (const Graph::NamedOutput& output : graph_.outputs()) {
    const bool is_loss = builder_.options().training && output.name == builder_.options().loss;
    if (is_loss) awaited.insert(output.tensor);
  }
  std::vector<NodeId> order = interleave_ ? ExecutionOrder(graph_, order_, DeviceMoves(), fused_,
                                                           builder_.options().spread_branches)
                                          : order_;
  std::stable_partition(order.begin(), order.end(), [&](NodeId id) {
    return !IsInChain(id) || fused_[id.value] || awaited.contains({id, 0});
  });
  return order;
}

absl::Status ForwardLowering::LowerParallel(NodeId id) {
  const Node& node = graph_.node(id);
  const TensorRef output{id, 0};
  const TensorType& type = node.outputs[0];
  ISOMER_ASSIGN_OR_RETURN(std::vector<int64_t> devices, builder_.Devices(id));
  const TensorRef chain_start = ChainStart(id);
  std::vector<ShardSource> sources;
  for (size_t s = 0; s < devices.size(); ++s) {
    const int64_t partial = CoordinatesOfShard(type, static_cast<int64_t>(s)).partial;
    if (node.op.kind() == OpKind::kConcatPartials) {
      const int64_t each = graph_.type(node.inputs[0]).partials;
      sources.push_back({node.inputs[partial / each], partial % each, 1});
    } else {
      sources.push_back(
          SourceInChain(chain_start, graph_.type(chain_start), type.partials, partial));
    }
  }
  Redistribute(&builder_, sources, output, devices, builder_.Moments(id));
  return absl::OkStatus();
}

// What a device has computed at one moment from copies that it has once, it has at all.
void ForwardLowering::ShareCall(NodeId id, size_t shard, int32_t moment, size_t t) {
  const int outputs = static_cast<int>(graph_.node(id).outputs.size());
  for (int32_t output = 0; output < outputs; ++output) {
    std::vector<BufferId>& shards = builder_.schedule().shards[{id, output}];
    shards.push_back(shards[shard]);
    builder_.ShareBuffer(shards.back(), moment);
  }
  Task& task = builder_.schedule().tasks[t];
  if (task.moment != moment) task.moment = kNoMoment;
}

absl::Status ForwardLowering::LowerCompute(NodeId id) {
  const Node& node = graph_.node(id);
  CallTable& known_calls = builder_.calls();
  if (absl::Status added = known_calls.Add(graph_, id); !added.ok()) {
    return absl::InvalidArgumentError(absl::StrCat(graph_.Label(id), ": ", added.message()));
  }
  const Sharding& sharding = known_calls.ShardingOf(id);
  ISOMER_ASSIGN_OR_RETURN(std::vector<int64_t> devices, builder_.Devices(id));
  const std::vector<int32_t> moments = builder_.Moments(id);

  std::vector<Sharding::Task> calls;
  for (size_t s = 0; s < devices.size(); ++s) {
    const ShardCoordinates at = CoordinatesOfShard(node.outputs[0], static_cast<int64_t>(s));
    calls.push_back(sharding.TaskOfOutputShard(at.dims, at.partial));
  }
  std::vector<std::vector<BufferId>> reads(devices.size());
  for (size_t o = 0; o < node.inputs.size(); ++o) {
    const TensorRef operand = homes_.Of(node.inputs[o]);
    parts_.Gather(operand);
    std::vector<Need> needs;
    needs.reserve(devices.size());
    for (size_t s = 0; s < devices.size(); ++s) {
      const Sharding::Task& task = calls[s];
      needs.push_back({static_cast<int32_t>(devices[s]),
                       sharding.OperandCoordinates(task, static_cast<int>(o)),
                       sharding.OperandPartial(task, static_cast<int>(o)),
                       sharding.OperandBox(task, static_cast<int>(o)),
                       moments.empty() ? kNoMoment : moments[s]});
    }
    const std::vector<BufferId> arrived = arrivals_.Arrive(operand, needs, id);
    for (size_t s = 0; s < devices.size(); ++s) reads[s].push_back(arrived[s]);
  }
  const Work& work = known_calls.ForwardWorkOf(id);
  OneOfCopies copies(node.outputs[0]);
  std::vector<size_t> tasks(devices.size());
  for (size_t s = 0; s < devices.size(); ++s) {
    if (!moments.empty()) {
      const size_t first = copies.FirstAt(devices[s], s);
      if (first != s && reads[first] == reads[s]) {
        ShareCall(id, first, moments[s], tasks[first]);
        continue;
      }
    }
    tasks[s] = builder_.schedule().tasks.size();
    std::vector<BufferId> writes;
    for (size_t t = 0; t < node.outputs.size(); ++t) {
      const TensorRef output{id, static_cast<int32_t>(t)};
      writes.push_back(builder_.AddShard(BufferRole::kActivation, output, static_cast<int64_t>(s),
                                         devices[s], moments.empty() ? kNoMoment : moments[s]));
      builder_.schedule().shards[output].push_back(writes.back());
    }
    Task& task = builder_.AddTask(TaskKind::kCompute, Phase::kForward, id,
                                  static_cast<int32_t>(devices[s]), reads[s], std::move(writes));
    task.shard = static_cast<int32_t>(s);
    if (!moments.empty()) task.moment = moments[s];
    task.flops = work.flops;
    task.bytes = work.bytes;
  }
  return absl::OkStatus();
}

absl::Status ForwardLowering::Run() {
  for (NodeId id : order_) {
    const Node& node = graph_.node(id);
    const bool micro_batches =
        std::any_of(node.outputs.begin(), node.outputs.end(),
                    [](const TensorType& type) { return type.micro_batches != 1; });
    if (micro_batches) {
      return absl::UnimplementedError(absl::StrCat(
          graph_.Label(id), ": micro-batches (Pipeline, Batch) cannot be scheduled yet"));
    }
  }
  CountUses();
  ISOMER_RETURN_IF_ERROR(homes_.Find());
  FindHostOperators();
  FindFusedOperators();
  // Host tensors first: those that an operator of the devices, or an output, uses.
  std::set<TensorRef> host_tensors;
  for (NodeId id : order_) {
    if (on_host_[id.value]) continue;
    for (TensorRef input : graph_.node(id).inputs) {
      if (IsHostTensor(input)) host_tensors.insert(homes_.Of(input));
    }
  }
  for (const Graph::NamedOutput& output : graph_.outputs()) {
    if (IsHostTensor(output.tensor)) host_tensors.insert(output.tensor);
  }
  for (TensorRef tensor : host_tensors) ISOMER_RETURN_IF_ERROR(AddHostTensor(tensor));
  // Load tasks come before feed tasks.
  std::stable_sort(builder_.schedule().tasks.begin(), builder_.schedule().tasks.end(),
                   [](const Task& a, const Task& b) { return a.phase < b.phase; });
  for (NodeId id : OrderOfDevices()) {
    if (on_host_[id.value] || fused_[id.value]) continue;
    const OpKind kind = graph_.node(id).op.kind();
    ISOMER_RETURN_IF_ERROR(IsParallel(kind) ? LowerParallel(id) : LowerCompute(id));
  }
  return LowerStates();
}

}  // namespace

absl::Status LowerForward(ScheduleBuilder* builder, bool interleave) {
  return ForwardLowering(builder, interleave).Run();
}

}  // namespace isomer
