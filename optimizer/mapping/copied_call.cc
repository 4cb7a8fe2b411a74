#include "optimizer/mapping/copied_call.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "optimizer/sharding/expansion.h"
#include "pcg/support/status_macros.h"
#include "rules/matching/rewrite.h"

namespace isomer {

absl::StatusOr<CopiedCall> CopyCall(const RuleIndex& rules, const Operator& call,
                                    absl::Span<const TensorType> operands,
                                    const Operator& replicate) {
  ISOMER_ASSIGN_OR_RETURN(Graph graph, GraphOfCall(call, operands));
  const NodeId copied{graph.num_nodes() - 1};
  ISOMER_ASSIGN_OR_RETURN(const TensorRef copy, graph.AddOp(replicate, {{copied, 0}}));
  graph.AddOutput("copy", copy);
  for (const Rule* rule : rules.CopiesOf(call.kind())) {
    std::vector<DerivationStep> steps = FindMatches(graph, *rule);
    if (steps.empty()) continue;
    CopiedCall result;
    const int first = graph.num_nodes();
    ISOMER_RETURN_IF_ERROR(result.steps.Apply(*rule, std::move(steps[0]), &graph));
    for (int id = first; id < graph.num_nodes(); ++id) {
      if (graph.node(NodeId{id}).op.kind() == call.kind()) result.call.id = NodeId{id};
    }
    // Rules may exchange operands.
    const std::vector<TensorRef>& before = graph.node(copied).inputs;
    for (TensorRef copy_of : graph.node(result.call.id).inputs) {
      const TensorRef operand = graph.node(copy_of.node).inputs[0];
      const auto at = std::find(before.begin(), before.end(), operand);
      result.call.order.push_back(static_cast<int>(at - before.begin()));
    }
    return result;
  }
  return absl::NotFoundError("no rule copies this call");
}

}  // namespace isomer
