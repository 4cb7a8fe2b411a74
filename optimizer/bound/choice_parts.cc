#include "optimizer/bound/choice_parts.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "optimizer/cost/halo_cost.h"
#include "optimizer/mapping/choice_pricer.h"
#include "pcg/profile/work.h"

namespace isomer {
namespace {

std::vector<int64_t> Kinds(const CostModel& cost, const ShardingChoice& choice) {
  const Placement& output = choice.outputs[0];
  return cost.OnePerKind(DevicesOf(output.view, output.type));
}

// Large messages have the best time per byte.
void AddUpdate(const Placement& weight, const ShardingChoice& choice, int64_t all_weights_bytes,
               const CostTables& tables, ChoiceParts* parts) {
  const CostModel& cost = tables.cost();
  const CostOptions& options = tables.options();
  const DeviceGroup group = GroupOfAxis(weight.view, weight.type.rank(), weight.type.copies);
  const WeightBytes each = BytesOfWeight(options, weight.type.dtype);
  const int64_t numbers = weight.type.LocalElements();
  const auto rate_us = [&](Collective kind) {
    const int64_t bytes = numbers * SentBytes(each, kind),
                  most = std::max(bytes, all_weights_bytes);
    const double together_us = cost.CollectiveUs(kind, most, group);
    return std::min(together_us * static_cast<double>(bytes) / static_cast<double>(most),
                    cost.CollectiveUs(kind, bytes, group));
  };
  const auto whole_us = [&](Collective kind) {
    return cost.CollectiveUs(kind, numbers * SentBytes(each, kind), group);
  };
  // A weight that some user reads in float32 is stored in it, without a master.
  int64_t bytes =
      std::min(numbers * each.update,
               numbers * BytesOfWeight(weight.type.dtype, options.optimizer, options.gradient_sums,
                                       /*averages=*/false, /*clips=*/false, options.state_precision)
                             .update) /
      3;
  double last_us = 0;
  switch (options.update_method) {
    case UpdateMethod::kAllReduce:
      parts->sync_us += rate_us(Collective::kAllReduce);
      parts->sync_latency_us =
          std::max(parts->sync_latency_us, cost.CollectiveUs(Collective::kAllReduce, 1, group));
      last_us = whole_us(Collective::kAllReduce);
      break;
    case UpdateMethod::kSharded:
    case UpdateMethod::kShardedGradients:
    case UpdateMethod::kShardedWeights:
      // Weights may be gathered again, and unsplittable ones are reduced to one owner.
      parts->sync_us += rate_us(Collective::kReduceScatter) + rate_us(Collective::kAllGather);
      last_us = std::min(whole_us(Collective::kReduceScatter), whole_us(Collective::kAllReduce));
      bytes /= group.count;
      break;
    case UpdateMethod::kOwner:
      // The owner may be another device.
      parts->sync_us += rate_us(Collective::kReduce) + rate_us(Collective::kBroadcast);
      return;
  }
  double alone_us = kImpossibleUs, shared_us = kImpossibleUs;
  for (int64_t device : Kinds(cost, choice)) {
    alone_us = std::min(alone_us, cost.UpdateUs(bytes, device));
    shared_us = std::min(shared_us, cost.SharedUpdateUs(bytes, device));
  }
  parts->update_us += options.updates_together ? shared_us : alone_us;
  parts->last_us = std::max(parts->last_us, last_us + alone_us);
}

// Time on the fastest device.
double ElementwiseUs(TaskKind kind, int64_t bytes, const ShardingChoice& choice,
                     const CostModel& cost) {
  double us = kImpossibleUs;
  for (int64_t device : Kinds(cost, choice)) {
    us = std::min(us, cost.ElementwiseTime(kind, bytes, device).us);
  }
  return us;
}

// Minimum time per device of adding to a gradient: at its use or at its producer, which may be on
// all devices. Calls add what they compute (pcg/schedule/memory/additions.h), except views.
double SumUs(const ShardingChoice& choice, const ComputeGraph::ComputeNode& node, bool keeps_order,
             size_t operand, const TensorType& type, const CostTables& tables) {
  const CostModel& cost = tables.cost();
  int64_t bytes = type.LocalBytes();
  if (node.operands[operand].producer >= 0) {
    const int64_t all = tables.num_devices();
    int64_t shards = 1;
    for (const auto& dim : type.dims) shards *= dim.degree;
    bytes = std::min(bytes, bytes * shards / all);
  }
  if (keeps_order) return ElementwiseUs(TaskKind::kAccumulate, 3 * bytes, choice, cost);
  double us = kImpossibleUs;
  for (int64_t device : Kinds(cost, choice)) us = std::min(us, cost.AddingUs(bytes, device));
  return us;
}

// Minimum, over the computed tensors that the call reads, of the additions to their gradients: a
// path comes from one of them.
double SumsOnPathUs(const ShardingChoice& choice, const ComputeGraph::ComputeNode& node,
                    const std::vector<TensorType>& types, const GradientSources& sources,
                    const CostTables& tables) {
  std::map<std::pair<int, int>, double> us;  // by producer and output
  for (size_t o = 0; o < node.operands.size(); ++o) {
    const ComputeGraph::Operand& operand = node.operands[o];
    if (operand.producer < 0 || !operand.gradient) continue;
    us[{operand.producer, operand.output}] +=
        sources.summed[o] ? SumUs(choice, node, sources.keeps_order, o, types[o], tables) : 0;
  }
  double least = us.empty() ? 0 : kImpossibleUs;
  for (const auto& [tensor, sum] : us) least = std::min(least, sum);
  return least;
}

}  // namespace

void ChargeFirstUses(const Graph& graph, ComputeGraph* compute) {
  std::set<TensorRef> charged;
  for (ComputeGraph::ComputeNode& node : compute->nodes) {
    for (size_t o = 0; o < node.operands.size(); ++o) {
      ComputeGraph::Operand& operand = node.operands[o];
      operand.first_use = charged.insert(graph.node(node.id).inputs[o]).second;
      operand.stored &= operand.first_use;
    }
  }
}

std::vector<GradientSources> FindGradientSources(const Graph& graph, const ComputeGraph& compute) {
  const size_t num_nodes = compute.nodes.size();
  std::set<TensorRef> read;
  for (const Graph::NamedOutput& output : graph.outputs()) read.insert(output.tensor);
  for (const ComputeGraph::ComputeNode& node : compute.nodes) {
    for (const ComputeGraph::Operand& operand : node.operands) {
      if (operand.producer >= 0) read.insert({compute.nodes[operand.producer].id, operand.output});
    }
  }
  int64_t all_weights_bytes = 0;
  for (int32_t id = 0; id < graph.num_nodes(); ++id) {
    const Node& node = graph.node(NodeId(id));
    if (node.op.kind() == OpKind::kWeight) all_weights_bytes += node.outputs[0].LocalBytes();
  }
  std::vector<bool> reached(num_nodes, false);
  std::vector<GradientSources> sources(num_nodes);
  // Per tensor: the use whose gradient is not added, the first in the backward pass, or a view's.
  std::map<TensorRef, std::pair<size_t, size_t>> alone;  // node and operand
  for (size_t n = num_nodes; n-- > 0;) {
    const ComputeGraph::ComputeNode& node = compute.nodes[n];
    sources[n].all_weights_bytes = all_weights_bytes;
    const int outputs = static_cast<int>(graph.node(node.id).outputs.size());
    for (int t = 0; t < outputs; ++t) {
      sources[n].filled.push_back(reached[n] && !read.contains({node.id, t}));
    }
    if (IsLoss(graph.node(node.id).op.kind())) reached[n] = true;
    sources[n].summed.assign(node.operands.size(), false);
    sources[n].keeps_order = CostModel::IsView(graph.node(node.id).op, node.operand_types);
    for (size_t o = 0; o < node.operands.size() && reached[n]; ++o) {
      const ComputeGraph::Operand& operand = node.operands[o];
      if (!operand.gradient) continue;
      if (operand.producer >= 0) reached[operand.producer] = true;
      const auto [use, is_first] = alone.try_emplace(graph.node(node.id).inputs[o], n, o);
      sources[n].summed[o] = !is_first;
      GradientSources& other = sources[use->second.first];
      if (sources[n].keeps_order && !other.keeps_order) {
        other.summed[use->second.second] = true;
        sources[n].summed[o] = false;
        use->second = {n, o};
      }
    }
  }
  return sources;
}

ChoiceParts PartsOfChoice(const ChoiceSpace& space, const ShardingChoice& choice,
                          const ComputeGraph::ComputeNode& node, const GradientSources& sources,
                          const CostTables& tables) {
  const CostModel& cost = tables.cost();
  const CostOptions& options = tables.options();
  ChoiceParts parts;
  std::vector<TensorType> types;
  std::vector<bool> wanted;
  for (size_t o = 0; o < choice.operands.size(); ++o) {
    types.push_back(choice.operands[o].type);
    if (!IsLoss(space.op.kind())) {
      types[o].dtype = ComputedIn(options.precision, types[o].dtype);
    }
    wanted.push_back(node.operands[o].gradient);
  }
  for (int64_t degree : choice.degrees) parts.devices *= static_cast<double>(degree);
  const std::vector<int64_t> used = DevicesOf(choice.outputs[0].view, choice.outputs[0].type);
  const auto uses = [&](int64_t device) {
    return std::find(used.begin(), used.end(), device) != used.end();
  };
  parts.on_first = uses(0);
  parts.on_upper = uses(tables.num_devices() / 2);
  const auto sharding = InferSharding(space.op, types);
  if (!sharding.ok()) return parts;
  // A plan may keep any product in bfloat16.
  const Operator computed = AsComputed(space.op, node, options);
  const auto fastest_us = [&](const std::vector<bool>& gradients, const Work& work) {
    double us = kImpossibleUs;
    for (int64_t device : Kinds(cost, choice)) {
      for (const Operator* op : {&space.op, &computed}) {
        us = std::min(us, cost.CallUs(*op, types, gradients, work, device));
      }
    }
    return us;
  };
  const bool backward =
      options.training && std::find(wanted.begin(), wanted.end(), true) != wanted.end();
  parts.forward_us = fastest_us({}, ForwardWork(space.op, *sharding, types, /*saves=*/backward));
  for (size_t o = 0; o < choice.operands.size(); ++o) {
    Placement placement = choice.operands[o];
    placement.type.dtype = types[o].dtype;
    if (node.operands[o].first_use) {
      parts.halo_us += CostOfHalo(cost, *sharding, static_cast<int>(o), placement).us *
                       (backward && wanted[o] ? 2 : 1);
    }
    if (backward && sources.summed[o]) {
      parts.sums_us += SumUs(choice, node, sources.keeps_order, o, types[o], tables);
    }
    if (!backward || !node.operands[o].stored || !wanted[o]) continue;
    AddUpdate(choice.operands[o], choice, sources.all_weights_bytes, tables, &parts);
  }
  if (!backward) return parts;
  for (size_t t = 0; t < choice.outputs.size(); ++t) {
    if (!sources.filled[t]) continue;
    parts.sums_us +=
        ElementwiseUs(TaskKind::kFill, choice.outputs[t].type.LocalBytes(), choice, cost);
  }
  const auto gradient_us = [&](const std::vector<bool>& of) {
    return fastest_us(of, GradientWork(space.op, *sharding, types, of));
  };
  const double on_path_us = SumsOnPathUs(choice, node, types, sources, tables);
  parts.sums_us -= on_path_us;
  const double together_us = gradient_us(wanted);
  parts.gradient_us = on_path_us + together_us;
  const std::vector<bool> weights = SeparateGradients(space.op, node);
  if (weights.empty()) return parts;
  std::vector<bool> data = wanted;
  for (size_t o = 0; o < data.size(); ++o) data[o] = data[o] && !weights[o];
  const double data_us = std::min(together_us, gradient_us(data));
  parts.gradient_us = on_path_us + data_us;
  parts.weights_us = std::min(together_us - data_us, gradient_us(weights));
  return parts;
}

}  // namespace isomer
