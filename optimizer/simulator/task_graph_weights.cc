// Weight gradients in a task graph: which are tasks of their own, as in pcg/schedule
// (split_gradients.h), and which node's gradients they follow as choices change.
#include <algorithm>
#include <utility>

#include "optimizer/simulator/simulator.h"
#include "optimizer/simulator/task_graph.h"
#include "pcg/ir/operator_facts.h"
#include "pcg/profile/work.h"
#include "pcg/support/status_macros.h"

namespace isomer {

// Finds the weight gradients that may be tasks of their own, and the nodes that they may follow.
void TaskGraph::FindContractions() {
  const auto is_contraction = [this](int n) {
    return n < num_nodes_ && IsContraction(graph_.node(compute_.nodes[n].id).op.kind());
  };
  for (Value& value : values_) {
    value.contracted = value.origin == Origin::kStored &&
                       std::all_of(value.uses.begin(), value.uses.end(),
                                   [&](const Use& use) { return is_contraction(use.node); });
  }
  int last = -1;
  for (int n = num_nodes_ - 1; n >= 0; --n) {
    if (is_contraction(n) && nodes_[n].has_gradient) last = n;
    nodes_[n].contraction = last;
  }
}

absl::StatusOr<std::vector<Picoseconds>> TaskGraph::GradientTimes(
    const ChoiceInfo& info, const NodeClass& node_class, const std::vector<bool>& wanted) const {
  const Operator& op = node_class.op;
  std::vector<TensorType> types;
  for (int operand : info.operands) types.push_back(moves_.place(operand).placement.type);
  ISOMER_ASSIGN_OR_RETURN(const Sharding sharding, InferSharding(op, types));
  const Work work = GradientWork(op, sharding, types, wanted);
  std::vector<Picoseconds> times;
  for (int32_t device : info.call->devices) {
    times.push_back(PicosecondsOf(cost_.CallTime(op, types, wanted, work, device).us));
  }
  return times;
}

// Follow the data gradients on the same devices.
BlockTasks TaskGraph::WeightGradientTasks(int node, const ChoiceInfo& info) const {
  BlockTasks tasks;
  for (size_t s = 0; s < info.call->devices.size(); ++s) {
    tasks.Add(info.weight_gradient[s] + AddingTime(node, s, /*of_weights=*/true));
    tasks.AddQueue(ComputeQueue(info.call->devices[s]));
  }
  return tasks;
}

int TaskGraph::PlaceOfWeights(int contraction) const {
  const NodeState& node = nodes_[contraction];
  const std::vector<bool>& weights = node.node_class->weights;
  for (size_t o = 0; o < weights.size(); ++o) {
    const Value& value = values_[node.operands[o].value];
    if (weights[o] && !(value.contracted && value.stays)) return -1;
  }
  if (weights.empty()) return -1;
  for (int n = contraction; n >= 0 && nodes_[n].contraction == contraction; --n) {
    const auto& operands = nodes_[n].operands;
    if (std::any_of(operands.begin(), operands.end(),
                    [](const Operand& operand) { return operand.sends_back; })) {
      return n;
    }
  }
  return -1;
}

std::vector<int> TaskGraph::MoveWeights(const std::vector<int>& values, std::vector<int>* nodes,
                                        std::vector<BlockTimeline::Change>* changes) {
  std::vector<int> contractions, moved;
  for (int value : values) {
    for (const Use& use : values_[value].uses) {
      if (use.node < num_nodes_ && nodes_[use.node].contraction >= 0) {
        contractions.push_back(nodes_[use.node].contraction);
      }
    }
  }
  std::sort(contractions.begin(), contractions.end());
  contractions.erase(std::unique(contractions.begin(), contractions.end()), contractions.end());
  for (int contraction : contractions) {
    NodeState& node = nodes_[contraction];
    const int behind = PlaceOfWeights(contraction);
    if (behind == node.weights_behind) continue;
    if (!undo_.empty()) undo_.back().weights_behind.push_back({contraction, node.weights_behind});
    if (node.weights_behind >= 0) {
      const int32_t end = WeightsEnd(node.weights_behind);
      for (int32_t b = WeightsBlock(node.weights_behind); b < end; ++b) changes->push_back({b, {}});
    }
    node.weights_behind = behind;
    nodes->push_back(contraction);
    for (size_t o = 0; o < node.operands.size(); ++o) {
      if (node.node_class->weights[o]) moved.push_back(node.operands[o].value);
    }
  }
  std::sort(moved.begin(), moved.end());
  moved.erase(std::unique(moved.begin(), moved.end()), moved.end());
  return moved;
}

// Keeps the last of several changes of a block.
void TaskGraph::KeepLast(std::vector<BlockTimeline::Change>* changes) {
  std::stable_sort(changes->begin(), changes->end(),
                   [](const auto& a, const auto& b) { return a.block < b.block; });
  size_t kept = 0;
  for (size_t i = 0; i < changes->size(); ++i) {
    if (i + 1 < changes->size() && (*changes)[i + 1].block == (*changes)[i].block) continue;
    if (kept != i) (*changes)[kept] = std::move((*changes)[i]);
    ++kept;
  }
  changes->erase(changes->begin() + static_cast<int64_t>(kept), changes->end());
}

}  // namespace isomer
