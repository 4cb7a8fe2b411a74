#include "optimizer/compute_graph.h"

#include <algorithm>

#include "pcg/operator_facts.h"
#include "pcg/work.h"

namespace isomer {
namespace {

// Nodes whose outputs are stored tensors: weights and what arranges them.
std::vector<bool> LoadedNodes(const Graph& graph, const std::vector<NodeId>& order, bool training) {
  const auto users = graph.Users();
  std::vector<bool> loaded(graph.num_nodes(), false), is_output(graph.num_nodes(), false);
  for (const auto& output : graph.outputs()) is_output[output.tensor.node.value] = true;
  auto used_once = [&](TensorRef tensor) {
    int uses = 0;
    for (const Graph::Use& use : users[tensor.node.value]) {
      uses += graph.node(use.user).inputs[use.operand] == tensor;
    }
    return uses == 1 && !is_output[tensor.node.value];
  };
  for (NodeId id : order) {
    const Node& node = graph.node(id);
    if (IsStored(node.op.kind())) {
      loaded[id.value] = true;
    } else if (training ? IsLayout(node.op.kind()) : IsPreparation(node.op.kind())) {
      loaded[id.value] = std::all_of(node.inputs.begin(), node.inputs.end(), [&](TensorRef input) {
        return loaded[input.node.value] && (!training || used_once(input));
      });
    }
  }
  return loaded;
}

}  // namespace

ComputeGraph AnalyzeCompute(const Graph& graph, bool training,
                            const std::vector<NodeId>& fed_needs_gradient) {
  ComputeGraph result;
  const std::vector<NodeId> order = graph.TopologicalOrder();
  const std::vector<bool> loaded = LoadedNodes(graph, order, training);
  result.index.assign(graph.num_nodes(), -1);
  result.depends_on_weight.assign(graph.num_nodes(), false);
  for (NodeId id : fed_needs_gradient) result.depends_on_weight[id.value] = true;
  for (NodeId id : order) {
    const Node& node = graph.node(id);
    if (node.op.kind() == OpKind::kWeight) result.depends_on_weight[id.value] = true;
    for (TensorRef input : node.inputs) {
      if (loaded[id.value] && result.depends_on_weight[input.node.value]) {
        result.depends_on_weight[id.value] = true;
      }
    }
    if (loaded[id.value] || IsLeaf(node.op.kind())) continue;
    ComputeGraph::ComputeNode compute;
    compute.id = id;
    for (TensorRef input : node.inputs) {
      ComputeGraph::Operand operand;
      operand.producer = result.index[input.node.value];
      operand.output = input.output;
      operand.stored = loaded[input.node.value];
      operand.gradient =
          result.depends_on_weight[input.node.value] && IsFloat(graph.type(input).dtype);
      if (operand.gradient) result.depends_on_weight[id.value] = true;
      compute.operands.push_back(operand);
      compute.operand_types.push_back(graph.type(input));
    }
    result.index[id.value] = static_cast<int>(result.nodes.size());
    result.nodes.push_back(std::move(compute));
  }
  return result;
}

void DropGradientsWithoutLoss(const Graph& graph, const std::string& loss, ComputeGraph* compute) {
  if (loss.empty()) return;
  std::vector<bool> leads(graph.num_nodes(), false);
  for (const Graph::NamedOutput& output : graph.outputs()) {
    if (output.name == loss) leads[output.tensor.node.value] = true;
  }
  const std::vector<NodeId> order = graph.TopologicalOrder();
  for (auto id = order.rbegin(); id != order.rend(); ++id) {
    if (!leads[id->value]) continue;
    // Gradients pass floats alone: what a comparison or a look-up decides has none.
    for (TensorRef input : graph.node(*id).inputs) {
      if (IsFloat(graph.type(input).dtype)) leads[input.node.value] = true;
    }
  }
  for (ComputeGraph::ComputeNode& node : compute->nodes) {
    if (leads[node.id.value]) continue;
    for (ComputeGraph::Operand& operand : node.operands) operand.gradient = false;
  }
}

std::vector<bool> SeparateGradients(const Operator& op, const ComputeGraph::ComputeNode& node) {
  std::vector<bool> separate;
  bool some = false, others = false;
  for (const ComputeGraph::Operand& operand : node.operands) {
    separate.push_back(operand.gradient && operand.producer < 0);
    (separate.back() ? some : others) |= operand.gradient;
  }
  if (!some || !others || !GradientsAreProducts(op)) separate.clear();
  return separate;
}

}  // namespace isomer
