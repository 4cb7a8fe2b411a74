#include "optimizer/proposal/expert_calls.h"

#include "optimizer/sharding/batch_dims.h"
#include "pcg/ir/operator_facts.h"

namespace isomer {

ExpertCalls::ExpertCalls(const Graph& graph)
    : graph_(graph),
      leads_to_product_(graph.num_nodes(), false),
      leads_to_group_sum_(graph.num_nodes(), false) {
  const std::vector<std::vector<Graph::Use>> users = graph.Users();
  const std::vector<NodeId> order = graph.TopologicalOrder();
  for (auto id = order.rbegin(); id != order.rend(); ++id) {
    for (const Graph::Use& use : users[id->value]) {
      const Node& user = graph.node(use.user);
      const OpKind kind = user.op.kind();
      const bool ends = kind == OpKind::kMatMul || IsLayout(kind) || IsLookUp(kind);
      if (ends ? IsProduct(use.user) : leads_to_product_[use.user.value]) {
        leads_to_product_[id->value] = true;
      }
      if (kind == OpKind::kGatherSum && GathersWithinGroups(use.user) && use.operand == 0) {
        leads_to_group_sum_[id->value] = true;
      }
    }
  }
  for (int i = 0; i < graph.num_nodes(); ++i) {
    if (!RoutesWithinGroups({i})) continue;
    num_groups_ = graph.type(graph.node({i}).inputs[0]).dims.end()[-3].size;
    break;
  }
}

bool ExpertCalls::RoutesWithinGroups(NodeId id) const {
  const Node& node = graph_.node(id);
  return node.op.kind() == OpKind::kTopKRouting && graph_.type(node.inputs[0]).rank() > 3;
}

bool ExpertCalls::GathersWithinGroups(NodeId id) const {
  const Node& node = graph_.node(id);
  const OpKind kind = node.op.kind();
  return (kind == OpKind::kGatherRows || kind == OpKind::kGatherSum) &&
         RoutesWithinGroups(node.inputs[1].node);
}

int ExpertCalls::GroupDimOf(const CallToMap& call) const {
  const Node& node = graph_.node(call.id);
  const Declaration& d = call.declaration();
  if (RoutesWithinGroups(call.id) || GathersWithinGroups(call.id)) {
    return d.LeadOfOperandDim(0, graph_.type(node.inputs[0]).rank() - 3);
  }
  if (node.op.kind() != OpKind::kReshape) return -1;
  const TensorType& from = graph_.type(node.inputs[0]);
  if (leads_to_group_sum_[call.id.value]) {
    return d.LeadOfOutputDim(0, node.outputs[0].rank() - 3);
  }
  // Rows of the experts of a group, which become those of all experts.
  const bool is_gathered = GathersWithinGroups(node.inputs[0].node) &&
                           graph_.node(node.inputs[0].node).op.kind() == OpKind::kGatherRows;
  return is_gathered ? d.LeadOfOperandDim(0, from.rank() - 4) : -1;
}

int64_t ExpertCalls::num_experts() const {
  for (int i = 0; i < graph_.num_nodes(); ++i) {
    if (IsProduct({i})) return graph_.type(graph_.node({i}).inputs[1]).dims[0].size;
  }
  return 0;
}

bool ExpertCalls::IsProduct(NodeId id) const {
  const Node& node = graph_.node(id);
  if (node.op.kind() != OpKind::kMatMul) return false;
  const Node& weight = graph_.node(node.inputs[1].node);
  return weight.op.kind() == OpKind::kWeight && weight.outputs[0].rank() >= 3;
}

bool ExpertCalls::IsBiased(NodeId id) const {
  const Node& node = graph_.node(id);
  if (node.op.kind() != OpKind::kAdd || !IsProduct(node.inputs[0].node)) return false;
  const Node& bias = graph_.node(node.inputs[1].node);
  return bias.op.kind() == OpKind::kWeight && bias.outputs[0].rank() >= 3;
}

int ExpertCalls::DimOf(const CallToMap& call) const {
  if (IsProduct(call.id)) return call.declaration().LeadOfOperandDim(1, 0);
  return leads_to_product_[call.id.value] || IsBiased(call.id) ? call.DimOf(DimRole::kExpert) : -1;
}

}  // namespace isomer
