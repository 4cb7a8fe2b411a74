#include "optimizer/segments.h"

#include <algorithm>

namespace isomer {

std::vector<NodeId> NodesBetweenBorders(const Graph& graph, int min_nodes) {
  const std::vector<NodeId> order = graph.TopologicalOrder();
  // Made from what earlier calls of the step make.
  std::vector<bool> is_made(graph.num_nodes(), false), of_samples(graph.num_nodes(), false);
  std::vector<size_t> last_use(graph.num_nodes(), 0);
  for (size_t at = 0; at < order.size(); ++at) {
    const Node& node = graph.node(order[at]);
    const bool is_input = node.op.kind() == OpKind::kInput;
    bool made = !IsLeaf(node.op.kind()) && !IsParallel(node.op.kind()), samples = is_input;
    for (TensorRef input : node.inputs) {
      last_use[input.node.value] = at;
      made |= is_made[input.node.value];
      samples |= of_samples[input.node.value];
    }
    of_samples[order[at].value] = samples;
    is_made[order[at].value] = made && samples;
  }
  for (const Graph::NamedOutput& output : graph.outputs()) {
    last_use[output.tensor.node.value] = std::max(last_use[output.tensor.node.value], order.size());
  }
  std::vector<NodeId> between;
  // How many made tensors are used behind a place in the order.
  std::vector<int> ends(order.size() + 2, 0);
  int alive = 0, nodes = 0;
  for (size_t at = 0; at < order.size(); ++at) {
    const NodeId id = order[at];
    const Node& node = graph.node(id);
    alive -= ends[at];
    if (is_made[id.value] && last_use[id.value] > at) {
      ++alive;
      ++ends[last_use[id.value]];
    }
    if (IsLeaf(node.op.kind())) continue;
    ++nodes;
    const bool is_border = is_made[id.value] && alive == 1 && last_use[id.value] > at &&
                           node.outputs.size() == 1 && !IsParallel(node.op.kind());
    if (is_border && nodes >= min_nodes) {
      nodes = 0;
      continue;
    }
    between.push_back(id);
  }
  std::sort(between.begin(), between.end());
  return between;
}

}  // namespace isomer
