#include "pcg/schedule/execution_order.h"

#include <algorithm>
#include <limits>
#include <utility>

namespace isomer {

std::vector<NodeId> ExecutionOrder(const Graph& graph, std::vector<NodeId> order,
                                   const std::vector<bool>& is_move,
                                   const std::vector<bool>& is_fused) {
  const int n = graph.num_nodes();
  // Exchanges before a node, and before its users; a chain that only slices is none.
  std::vector<int> before(n, 0), behind(n, 0);
  std::vector<bool> sends(n, false);
  for (NodeId id : order) {
    const Node& node = graph.node(id);
    for (TensorRef input : node.inputs) {
      before[id.value] = std::max(before[id.value], behind[input.node.value]);
    }
    behind[id.value] = before[id.value];
    if (!is_move[id.value]) continue;
    const int operand = node.inputs[0].node.value;
    sends[id.value] = node.op.kind() != OpKind::kPartition || (is_fused[operand] && sends[operand]);
    if (!is_fused[id.value] && sends[id.value]) ++behind[id.value];
  }
  // What is made of weights alone is made for its first user: what comes before it may be all of
  // the step, in which it would take memory, and so would its gradient.
  std::vector<bool> of_weights(n, false);
  std::vector<int> first_user(n, std::numeric_limits<int>::max());
  for (NodeId id : order) {
    const Node& node = graph.node(id);
    of_weights[id.value] = node.op.kind() != OpKind::kInput &&
                           std::all_of(node.inputs.begin(), node.inputs.end(),
                                       [&](TensorRef i) { return of_weights[i.node.value]; });
  }
  for (auto id = order.rbegin(); id != order.rend(); ++id) {
    const bool is_used = first_user[id->value] != std::numeric_limits<int>::max();
    if (of_weights[id->value] && is_used && !is_move[id->value]) {
      before[id->value] = first_user[id->value];
    }
    for (TensorRef input : graph.node(*id).inputs) {
      int& first = first_user[input.node.value];
      first = std::min(first, before[id->value]);
    }
  }
  // What an exchange has behind it is counted in no node before it, so this is topological.
  std::stable_sort(order.begin(), order.end(),
                   [&](NodeId a, NodeId b) { return before[a.value] < before[b.value]; });
  return order;
}

}  // namespace isomer
