#include "optimizer/sharding/batch_dims.h"

#include <algorithm>
#include <numeric>

#include "pcg/ir/operator.h"
#include "pcg/schedule/lowering/call_table.h"

namespace isomer {

namespace {

const std::vector<Index>& ReadAt(const Declaration& d) { return d.accesses[0].indices; }
const std::vector<Index>& WrittenAt(const Declaration& d) { return d.statements[0].indices; }

// Of a Reshape, whose iteration dims have roles by the operand dims that they lead.
void FollowParts(const Declaration& d, const std::vector<DimRole>& of_operand,
                 std::vector<DimRole>* roles) {
  for (size_t i = 0; i < of_operand.size(); ++i) {
    const int lead = d.LeadOfOperandDim(0, static_cast<int>(i));
    if (of_operand[i] != DimRole::kSequence || lead < 0) continue;
    for (const auto& [dim, stride] : ReadAt(d)[i].terms) {
      if (dim != lead) (*roles)[dim] = DimRole::kWithinSequence;
    }
  }
  for (size_t i = 0; i < d.outputs[0].size(); ++i) {
    const int lead = d.LeadOfOutputDim(0, static_cast<int>(i));
    if (lead < 0 || (*roles)[lead] != DimRole::kWithinSequence) continue;
    for (const auto& [dim, stride] : WrittenAt(d)[i].terms) {
      if ((*roles)[dim] != DimRole::kSequence) continue;
      std::swap((*roles)[dim], (*roles)[lead]);
      break;
    }
  }
}

}  // namespace

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
  if (graph_.node(call).op.kind() == OpKind::kReshape) {
    FollowParts(declaration, of(inputs[0]), &roles);
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

namespace {

// Calls visit(call, declaration, roles of its iteration dims), in topological order.
template <typename Visit>
void FollowRoles(const Graph& graph, DimRoles* follow, const Visit& visit) {
  CallTable calls(graph.num_nodes());
  for (NodeId id : graph.TopologicalOrder()) {
    const Node& node = graph.node(id);
    if (IsLeaf(node.op.kind()) || IsParallel(node.op.kind())) continue;
    if (!calls.Add(graph, id).ok()) continue;
    const Declaration& declaration = calls.ShardingOf(id).declaration;
    const std::vector<DimRole> roles = follow->OfCall(id, declaration);
    follow->Mark(id, declaration, roles);
    visit(id, declaration, roles);
  }
}

int BatchDimOf(const std::vector<DimRole>& roles) {
  const auto batch = std::find(roles.begin(), roles.end(), DimRole::kBatch);
  return batch == roles.end() ? -1 : static_cast<int>(batch - roles.begin());
}

}  // namespace

std::vector<int> BatchDims(const Graph& graph) { return BatchDims(graph, {}); }

std::vector<int> BatchDims(const Graph& piece, absl::Span<const FedRoles> fed) {
  std::vector<int> dims(piece.num_nodes(), -1);
  DimRoles follow(piece);
  for (const FedRoles& input : fed) follow.set({input.input, 0}, input.roles);
  FollowRoles(piece, &follow, [&](NodeId id, const Declaration&, const auto& roles_of_call) {
    dims[id.value] = BatchDimOf(roles_of_call);
  });
  return dims;
}

DimRoles RolesOf(const Graph& graph) {
  DimRoles roles(graph);
  FollowRoles(graph, &roles, [](NodeId, const Declaration&, const auto&) {});
  return roles;
}

bool MixesSamples(const Graph& graph) {
  // Per node without a batch dim: whether it is computed from several samples.
  std::vector<bool> of_several(graph.num_nodes(), false);
  bool mixes = false;
  DimRoles follow(graph);
  FollowRoles(graph, &follow,
              [&](NodeId id, const Declaration& d, const std::vector<DimRole>& roles) {
                const int batch = BatchDimOf(roles);
                const std::vector<DimRole>& result = follow.of({id, 0});
                const bool apart = BatchDimOf(result) >= 0;
                bool reads_several = false;
                for (TensorRef input : graph.node(id).inputs) {
                  reads_several |= of_several[input.node.value];
                }
                mixes |= apart && (reads_several || d.dims[batch].kind == DimKind::kWhole);
                of_several[id.value] = !apart && (reads_several || batch >= 0);
              });
  return mixes;
}

std::vector<bool> OfData(const Graph& graph) {
  std::vector<bool> of_data(graph.num_nodes(), false);
  for (NodeId id : graph.TopologicalOrder()) {
    const Node& node = graph.node(id);
    of_data[id.value] = node.op.kind() == OpKind::kInput ||
                        std::any_of(node.inputs.begin(), node.inputs.end(),
                                    [&](TensorRef input) { return of_data[input.node.value]; });
  }
  return of_data;
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
