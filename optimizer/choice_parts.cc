#include "optimizer/choice_parts.h"

#include <algorithm>
#include <set>
#include <vector>

#include "optimizer/choice_pricer.h"
#include "optimizer/halo_cost.h"
#include "pcg/work.h"

namespace isomer {
namespace {

constexpr int64_t kLargeBytes = int64_t{1} << 34;

std::vector<int64_t> Kinds(const CostModel& cost, const ShardingChoice& choice) {
  const Placement& output = choice.outputs[0];
  return cost.OnePerKind(DevicesOf(output.view, output.type));
}

void AddUpdate(const Placement& weight, const ShardingChoice& choice, const CostTables& tables,
               ChoiceParts* parts) {
  const CostModel& cost = tables.cost();
  const CostOptions& options = tables.options();
  const DeviceGroup group = {weight.view.start, weight.view.strides.end()[-2], weight.type.copies};
  int64_t bytes = weight.type.LocalBytes();
  const auto rate_us = [&](Collective kind) {
    const double large_us = cost.CollectiveUs(kind, kLargeBytes, group);
    return std::min(large_us * static_cast<double>(bytes) / static_cast<double>(kLargeBytes),
                    cost.CollectiveUs(kind, bytes, group));
  };
  switch (options.update_method) {
    case UpdateMethod::kAllReduce:
      parts->sync_us += rate_us(Collective::kAllReduce);
      break;
    case UpdateMethod::kSharded:
    case UpdateMethod::kShardedGradients:
    case UpdateMethod::kShardedWeights:
      // Weights may be gathered once more.
      parts->sync_us += rate_us(Collective::kReduceScatter) + rate_us(Collective::kAllGather);
      bytes /= group.count;
      break;
    case UpdateMethod::kOwner:
      // Another device may own it.
      parts->sync_us += rate_us(Collective::kReduce) + rate_us(Collective::kBroadcast);
      return;
  }
  const int64_t passes = 3 + 2 * NumStates(options.optimizer);
  double us = kImpossibleUs;
  for (int64_t device : Kinds(cost, choice)) {
    us = std::min(us, cost.UpdateUs(bytes * passes / 3, device));
  }
  parts->update_us += us;
}

}  // namespace

void ChargeFirstUses(const Graph& graph, ComputeGraph* compute) {
  std::set<TensorRef> charged;
  for (ComputeGraph::ComputeNode& node : compute->nodes) {
    for (size_t o = 0; o < node.operands.size(); ++o) {
      if (node.operands[o].stored && !charged.insert(graph.node(node.id).inputs[o]).second) {
        node.operands[o].stored = false;
      }
    }
  }
}

ChoiceParts PartsOfChoice(const ChoiceSpace& space, const ShardingChoice& choice,
                          const ComputeGraph::ComputeNode& node, const CostTables& tables) {
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
  const auto sharding = InferSharding(space.op, types);
  if (!sharding.ok()) return parts;
  const auto fastest_us = [&](const std::vector<bool>& gradients, const Work& work) {
    double us = kImpossibleUs;
    for (int64_t device : Kinds(cost, choice)) {
      us = std::min(us, cost.CallUs(space.op, types, gradients, work, device));
    }
    return us;
  };
  parts.forward_us = fastest_us({}, ForwardWork(space.op, *sharding, types));
  const bool backward =
      options.training && std::find(wanted.begin(), wanted.end(), true) != wanted.end();
  for (size_t o = 0; o < choice.operands.size(); ++o) {
    Placement placement = choice.operands[o];
    placement.type.dtype = types[o].dtype;
    parts.halo_us += CostOfHalo(cost, *sharding, static_cast<int>(o), placement).us *
                     (backward && wanted[o] ? 2 : 1);
    if (!backward || !node.operands[o].stored || !wanted[o]) continue;
    AddUpdate(choice.operands[o], choice, tables, &parts);
  }
  if (backward) {
    parts.gradient_us = fastest_us(wanted, GradientWork(space.op, *sharding, types, wanted));
  }
  return parts;
}

}  // namespace isomer
