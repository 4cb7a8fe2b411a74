#include "models/onnx/graph/drop_unused.h"

#include <utility>
#include <vector>

namespace isomer {

void DropUnused(Model* model) {
  Graph& graph = model->graph;
  const std::vector<std::vector<Graph::Use>> users = graph.Users();
  std::vector<bool> is_output(graph.num_nodes(), false);
  for (const Graph::NamedOutput& output : graph.outputs()) {
    is_output[output.tensor.node.value] = true;
  }
  Graph kept;
  std::vector<NodeId> ids(graph.num_nodes());
  for (NodeId id : graph.TopologicalOrder()) {
    const Node& node = graph.node(id);
    const OpKind kind = node.op.kind();
    const bool is_used = !users[id.value].empty() || is_output[id.value];
    if (!is_used && kind == OpKind::kConstant) {
      model->weights.erase(node.name);
      continue;
    }
    if (!is_used && !IsLeaf(kind)) continue;
    if (IsLeaf(kind)) {
      ids[id.value] = kept.AddLeaf(kind, node.name, node.outputs[0]).node;
    } else {
      std::vector<TensorRef> inputs = node.inputs;
      for (TensorRef& input : inputs) input.node = ids[input.node.value];
      ids[id.value] = *kept.Add(node.op, std::move(inputs), node.name);
    }
  }
  for (const Graph::NamedOutput& output : graph.outputs()) {
    kept.AddOutput(output.name, {ids[output.tensor.node.value], output.tensor.output});
  }
  graph = std::move(kept);
}

}  // namespace isomer
