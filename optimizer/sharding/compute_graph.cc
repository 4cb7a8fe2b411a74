#include "optimizer/sharding/compute_graph.h"

#include <algorithm>

#include "pcg/ir/operator_facts.h"
#include "pcg/profile/work.h"

namespace isomer {
namespace {

// Per node with outputs on the host: leaves, and results that the lowering computes there
// (pcg/schedule/lowering/forward.cc).
std::vector<HostLeaves> NodesOnHost(const Graph& graph, const std::vector<NodeId>& order,
                                    bool training) {
  const auto users = graph.Users();
  std::vector<HostLeaves> on_host(graph.num_nodes(), HostLeaves::kOther);
  std::vector<bool> is_output(graph.num_nodes(), false);
  for (const auto& output : graph.outputs()) is_output[output.tensor.node.value] = true;
  const auto used_once = [&](TensorRef tensor) {
    int uses = 0;
    for (const Graph::Use& use : users[tensor.node.value]) {
      uses += graph.node(use.user).inputs[use.operand] == tensor;
    }
    return uses == 1 && !is_output[tensor.node.value];
  };
  for (NodeId id : order) {
    const Node& node = graph.node(id);
    if (IsLeaf(node.op.kind())) {
      on_host[id.value] = LeavesOf(node.op.kind());
      continue;
    }
    HostLeaves leaves = on_host[node.inputs[0].node.value];
    bool integers = true, once = true;
    for (TensorRef input : node.inputs) {
      leaves = Together(leaves, on_host[input.node.value], training);
      integers &= !IsFloat(graph.type(input).dtype);
      once &= used_once(input);
    }
    if (IsMadeOnHost(node.op, leaves, integers, once, training)) {
      on_host[id.value] = leaves;
    }
  }
  return on_host;
}

}  // namespace

ComputeGraph AnalyzeCompute(const Graph& graph, bool training,
                            const std::vector<NodeId>& fed_needs_gradient) {
  ComputeGraph result;
  const std::vector<NodeId> order = graph.TopologicalOrder();
  const std::vector<HostLeaves> on_host = NodesOnHost(graph, order, training);
  const auto is_on_host = [&](NodeId id) { return on_host[id.value] != HostLeaves::kOther; };
  const auto is_loaded = [&](NodeId id) {
    return is_on_host(id) && on_host[id.value] != HostLeaves::kInputs;
  };
  result.index.assign(graph.num_nodes(), -1);
  result.depends_on_weight.assign(graph.num_nodes(), false);
  for (NodeId id : fed_needs_gradient) result.depends_on_weight[id.value] = true;
  for (NodeId id : order) {
    const Node& node = graph.node(id);
    if (node.op.kind() == OpKind::kWeight) result.depends_on_weight[id.value] = true;
    for (TensorRef input : node.inputs) {
      if (is_loaded(id) && result.depends_on_weight[input.node.value]) {
        result.depends_on_weight[id.value] = true;
      }
    }
    if (is_on_host(id)) continue;
    ComputeGraph::ComputeNode compute;
    compute.id = id;
    for (TensorRef input : node.inputs) {
      ComputeGraph::Operand operand;
      operand.producer = result.index[input.node.value];
      operand.output = input.output;
      operand.stored = is_loaded(input.node);
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
    // Gradients flow through floats only: decisions of comparisons and look-ups have none.
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
