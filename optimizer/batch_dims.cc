#include "optimizer/batch_dims.h"

#include <algorithm>
#include <numeric>

#include "pcg/operator.h"

namespace isomer {

DimRoles::DimRoles(const Graph& graph) : graph_(graph) {
  roles_.resize(graph.num_nodes());
  for (int i = 0; i < graph.num_nodes(); ++i) {
    for (const TensorType& type : graph.node(i).outputs) {
      roles_[i].emplace_back(type.rank(), DimRole::kNone);
    }
    if (graph.node(i).op.kind() != OpKind::kInput) continue;
    std::vector<DimRole>& roles = roles_[i][0];
    if (!roles.empty()) roles[0] = DimRole::kBatch;
    if (roles.size() > 1) roles[1] = DimRole::kSequence;
  }
}

std::vector<DimRole> DimRoles::OfCall(NodeId call, const Declaration& declaration) const {
  std::vector<DimRole> roles(declaration.dims.size(), DimRole::kNone);
  const std::vector<TensorRef>& inputs = graph_.node(call).inputs;
  for (int o = 0; o < static_cast<int>(inputs.size()); ++o) {
    const std::vector<DimRole>& of_operand = of(inputs[o]);
    for (int i = 0; i < static_cast<int>(of_operand.size()); ++i) {
      if (of_operand[i] == DimRole::kNone) continue;
      const int lead = declaration.LeadOfOperandDim(o, i);
      if (lead >= 0 && roles[lead] == DimRole::kNone) roles[lead] = of_operand[i];
    }
  }
  return roles;
}

void DimRoles::Mark(NodeId call, const Declaration& declaration,
                    const std::vector<DimRole>& roles) {
  for (int t = 0; t < static_cast<int>(declaration.outputs.size()); ++t) {
    for (int i = 0; i < static_cast<int>(declaration.outputs[t].size()); ++i) {
      const int lead = declaration.LeadOfOutputDim(t, i);
      if (lead >= 0) roles_[call.value][t][i] = roles[lead];
    }
  }
}

std::vector<int> BatchDims(const Graph& graph) {
  std::vector<int> dims(graph.num_nodes(), -1);
  DimRoles follow(graph);
  for (NodeId id : graph.TopologicalOrder()) {
    const Node& node = graph.node(id);
    if (IsLeaf(node.op.kind()) || IsParallel(node.op.kind())) continue;
    std::vector<Shape> shapes;
    for (TensorRef input : node.inputs) shapes.push_back(graph.type(input).GlobalShape());
    const auto declaration = Declare(node.op, shapes);
    if (!declaration.ok()) continue;
    const std::vector<DimRole> roles = follow.OfCall(id, *declaration);
    const auto batch = std::find(roles.begin(), roles.end(), DimRole::kBatch);
    if (batch != roles.end()) dims[id.value] = static_cast<int>(batch - roles.begin());
    follow.Mark(id, *declaration, roles);
  }
  return dims;
}

int64_t BatchSize(const Graph& graph) {
  int64_t size = 0;
  for (int i = 0; i < graph.num_nodes(); ++i) {
    if (graph.node(i).op.kind() != OpKind::kInput) continue;
    const TensorType& type = graph.node(i).outputs[0];
    if (type.rank() > 0) size = std::gcd(size, type.dims[0].size);
  }
  return std::max<int64_t>(size, 1);
}

}  // namespace isomer
