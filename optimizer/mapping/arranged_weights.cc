#include "optimizer/mapping/arranged_weights.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "pcg/ir/operator_facts.h"
#include "pcg/support/status_macros.h"

namespace isomer {
namespace {

// The choice of a layout call whose result is requested as `wanted`. NotFound: impossible.
absl::StatusOr<ShardingChoice> ChoiceFor(const ChoiceSpace& space, const Placement& wanted) {
  const TensorType& type = wanted.type;
  if (!wanted.view.moments.empty() || type.partials > 1 || space.output_leads.size() != 1) {
    return absl::NotFoundError("micro-batches, partial sums or several results");
  }
  for (int i = 0; i < type.rank(); ++i) {
    if (wanted.view.OuterOf(i) != nullptr) return absl::NotFoundError("a dim in two strides");
  }
  std::vector<int64_t> stride_of(space.sharding.declaration.dims.size(), 0);
  std::vector<std::pair<int64_t, Axis>> axes;  // by stride
  for (int i = 0; i < type.rank(); ++i) {
    if (type.dims[i].degree == 1) continue;
    const int lead = space.output_leads[0][i];
    if (lead < 0) return absl::NotFoundError("a dim of the result that nothing splits");
    stride_of[lead] = wanted.view.strides[i];
    axes.push_back({wanted.view.strides[i], {lead, type.dims[i].degree}});
  }
  std::sort(axes.rbegin(), axes.rend());  // outermost first
  std::vector<Axis> split;
  for (const auto& [stride, axis] : axes) split.push_back(axis);
  ISOMER_ASSIGN_OR_RETURN(ShardingChoice choice,
                          MakeChoice(space, std::move(split), wanted.view.start));
  choice.outputs[0].type.copies = type.copies;
  if (choice.outputs[0].type != type) return absl::NotFoundError("not as it is wanted");
  choice.outputs[0].view = wanted.view;
  for (size_t o = 0; o < choice.operands.size(); ++o) {
    auto& [operand, view] = choice.operands[o];
    if (operand.copies > 1) return absl::NotFoundError("an operand is copied as it is");
    operand.copies = type.copies;
    view = {wanted.view.start, std::vector<int64_t>(operand.rank() + 2, 0)};
    for (int i = 0; i < operand.rank(); ++i) {
      const int lead = space.operand_leads[o][i];
      if (operand.dims[i].degree > 1) view.strides[i] = stride_of[lead];
    }
    view.strides[operand.rank()] = wanted.view.strides[type.rank()];
    for (OuterStride outer : wanted.view.outer) {  // of copies
      outer.axis = operand.rank();
      view.outer.push_back(outer);
    }
  }
  return choice;
}

// Per compute node: whether it is a layout call on weights.
std::vector<bool> ArrangingCalls(const Graph& graph, const ComputeGraph& compute) {
  std::vector<bool> arranges(compute.nodes.size(), false);
  for (size_t i = 0; i < compute.nodes.size(); ++i) {
    const ComputeGraph::ComputeNode& node = compute.nodes[i];
    arranges[i] = CanRunOnHost(graph.node(node.id).op.kind()) &&
                  std::all_of(node.operands.begin(), node.operands.end(), [&](const auto& operand) {
                    return operand.producer < 0 ? operand.stored : arranges[operand.producer];
                  });
  }
  return arranges;
}

}  // namespace

bool ArrangesWeights(const Graph& graph, const ComputeGraph& compute) {
  const std::vector<bool> arranges = ArrangingCalls(graph, compute);
  return std::find(arranges.begin(), arranges.end(), true) != arranges.end();
}

bool HasCopiedCalls(const Graph& graph) {
  for (int id = 0; id < graph.num_nodes(); ++id) {
    const Node& node = graph.node(NodeId{id});
    const bool is_call = !IsParallel(node.op.kind()) && !IsLeaf(node.op.kind());
    if (is_call && node.outputs[0].copies > 1) return true;
  }
  return false;
}

absl::StatusOr<std::map<NodeId, ShardingChoice>> ChoicesOfArrangedWeights(
    const Graph& graph, const ComputeGraph& compute,
    const std::map<NodeId, ShardingChoice>& choices, CostTables* tables) {
  const std::vector<bool> arranges = ArrangingCalls(graph, compute);
  std::map<NodeId, ShardingChoice> arranged;
  std::vector<const Placement*> wanted(compute.nodes.size(),
                                       nullptr);  // placement requested by the first user
  // Reverse topological: users come before producers.
  for (size_t i = compute.nodes.size(); i-- > 0;) {
    const ComputeGraph::ComputeNode& node = compute.nodes[i];
    const auto given = choices.find(node.id);
    const ShardingChoice* choice = given == choices.end() ? nullptr : &given->second;
    if (arranges[i] && wanted[i] != nullptr) {
      ISOMER_ASSIGN_OR_RETURN(const ChoiceSpace* space,
                              tables->Space(graph.node(node.id).op, node.operand_types));
      absl::StatusOr<ShardingChoice> made = ChoiceFor(*space, *wanted[i]);
      const bool has_rules = tables->rules().HasCopyOf(space->op.kind(), node.operand_types);
      if (made.ok() && (has_rules || made->outputs[0].type.copies == 1)) {
        choice = &(arranged[node.id] = *std::move(made));
      }
    }
    for (size_t o = 0; o < node.operands.size() && choice != nullptr; ++o) {
      const int producer = node.operands[o].producer;
      if (producer >= 0) wanted[producer] = &choice->operands[o];
    }
  }
  return arranged;
}

}  // namespace isomer
