#include "pcg/profile/model_statistics.h"

#include <algorithm>
#include <vector>

#include "pcg/ir/operator_facts.h"
#include "pcg/profile/work.h"
#include "pcg/support/check.h"

namespace isomer {

ModelStatistics StatisticsOf(const Graph& graph) {
  ModelStatistics statistics;
  for (NodeId id : graph.TopologicalOrder()) {
    const Node& node = graph.node(id);
    const OpKind kind = node.op.kind();
    if (kind == OpKind::kWeight) statistics.parameters += node.outputs[0].NumElements();
    if (IsLeaf(kind)) continue;
    if (kind == OpKind::kEmbedding) {
      const Node& ids = graph.node(node.inputs[1].node);
      if (ids.op.kind() == OpKind::kInput) {
        statistics.tokens = std::max(statistics.tokens, ids.outputs[0].NumElements());
      }
    }
    ++statistics.operators;
    if (IsParallel(kind)) continue;
    std::vector<TensorType> operands;
    for (TensorRef input : node.inputs) operands.push_back(graph.type(input));
    const absl::StatusOr<Sharding> sharding = InferSharding(node.op, operands);
    ISOMER_CHECK(sharding.ok());
    const double flops = ForwardWork(node.op, *sharding, operands).flops;
    statistics.forward_flops += flops;
    if (IsContraction(kind)) statistics.product_flops += flops;
  }
  return statistics;
}

}  // namespace isomer
