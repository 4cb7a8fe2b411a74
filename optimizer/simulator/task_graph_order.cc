// The order of a task graph's calls, and of their blocks of tasks.
#include <algorithm>
#include <map>
#include <numeric>
#include <utility>

#include "optimizer/simulator/task_graph.h"

namespace isomer {

// Free resharding is no exchange.
void TaskGraph::Interleave() {
  const auto& nodes = compute_.nodes;
  const auto choice_of = [&](NodeId id) {
    const auto choice = mapped_.choices.find(id);
    return choice == mapped_.choices.end() ? nullptr : &choice->second;
  };
  const auto is_exchange = [&](const ComputeGraph::Operand& from, const ShardingChoice* to, int o) {
    const ShardingChoice* produced = choice_of(nodes[from.producer].id);
    if (produced == nullptr || to == nullptr) return produced != to;
    const PlacementSetId held = tables_.Intern({produced->outputs[from.output]});
    const PlacementSetId needed = tables_.Intern({to->operands[o]});
    return tables_.EdgeUs(held, needed, /*gradient=*/false).at(0, 0) > 0;
  };
  std::vector<int> before(num_nodes_, 0), order(num_nodes_), place(num_nodes_);
  for (int n = 0; n < num_nodes_; ++n) {
    const ShardingChoice* choice = choice_of(nodes[n].id);
    for (int o = 0; o < static_cast<int>(nodes[n].operands.size()); ++o) {
      const ComputeGraph::Operand& operand = nodes[n].operands[o];
      if (operand.producer < 0) continue;
      before[n] = std::max(before[n], before[operand.producer] + is_exchange(operand, choice, o));
    }
  }
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](int a, int b) { return before[a] < before[b]; });
  for (int n = 0; n < num_nodes_; ++n) place[order[n]] = n;
  std::vector<ComputeGraph::ComputeNode> interleaved;
  for (int n : order) {
    interleaved.push_back(std::move(compute_.nodes[n]));
    for (ComputeGraph::Operand& operand : interleaved.back().operands) {
      if (operand.producer >= 0) operand.producer = place[operand.producer];
    }
  }
  compute_.nodes = std::move(interleaved);
  for (int& index : compute_.index) {
    if (index >= 0) index = place[index];
  }
}

int32_t TaskGraph::NumberBlocks() {
  int32_t next = 0;
  std::map<int, std::vector<int>> late;  // by producer
  for (int o = 0; o < NumOperands(num_nodes_); ++o) {
    const Value& value = values_[nodes_[num_nodes_].operands[o].value];
    if (training_ && value.producer >= 0) late[value.producer].push_back(o);
  }
  late_output_.assign(NumOperands(num_nodes_), -1);
  for (int n = 0; n <= num_nodes_; ++n) {
    nodes_[n].forward = next;
    next += 2 * NumOperands(n) + 1;
  }
  for (int n = num_nodes_; n >= 0; --n) {
    nodes_[n].backward = next;
    next += 4 * NumOperands(n) + 2;
    nodes_[n].weights = next;
    if (nodes_[n].contraction >= 0) next = WeightsEnd(n);
    for (int output : late[n]) late_output_[output] = next++;
  }
  for (int n = num_nodes_; n >= 0; --n) {
    nodes_[n].update = next;
    next += NumOperands(n);
  }
  return next;
}

}  // namespace isomer
