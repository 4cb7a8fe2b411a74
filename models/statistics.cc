#include "models/statistics.h"

#include <vector>

#include "pcg/support/check.h"
#include "pcg/work.h"

namespace isomer {
namespace {

bool IsProduct(OpKind kind) {
  switch (kind) {
    case OpKind::kMatMul:
    case OpKind::kLinear:
    case OpKind::kConv1d:
    case OpKind::kConv2d:
    case OpKind::kConv3d:
    case OpKind::kConvTranspose:
    case OpKind::kAttention:
      return true;
    default:
      return false;
  }
}

}  // namespace

ModelStatistics StatisticsOf(const Graph& graph) {
  ModelStatistics statistics;
  for (NodeId id : graph.TopologicalOrder()) {
    const Node& node = graph.node(id);
    const OpKind kind = node.op.kind();
    if (kind == OpKind::kWeight) statistics.parameters += node.outputs[0].NumElements();
    if (IsLeaf(kind)) continue;
    ++statistics.operators;
    if (IsParallel(kind)) continue;
    std::vector<TensorType> operands;
    for (TensorRef input : node.inputs) operands.push_back(graph.type(input));
    const absl::StatusOr<Sharding> sharding = InferSharding(node.op, operands);
    ISOMER_CHECK(sharding.ok());
    const double flops = ForwardWork(node.op, *sharding, operands).flops;
    statistics.forward_flops += flops;
    if (IsProduct(kind)) statistics.product_flops += flops;
  }
  return statistics;
}

}  // namespace isomer
