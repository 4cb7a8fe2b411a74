#include "runtime/logging/model_work.h"

#include <algorithm>
#include <vector>

#include "pcg/ir/type_inference.h"
#include "pcg/profile/work.h"
#include "runtime/data/input_binding.h"

namespace isomer {
namespace {

// By node: whether a weight goes into it, and whether the loss comes of it.
struct Reach {
  std::vector<bool> of_weights, to_loss;
};

Reach ReachOf(const Graph& graph, absl::string_view loss) {
  Reach reach = {std::vector<bool>(graph.num_nodes()), std::vector<bool>(graph.num_nodes())};
  const std::vector<NodeId> order = graph.TopologicalOrder();
  for (NodeId id : order) {
    const Node& node = graph.node(id);
    reach.of_weights[id.value] =
        node.op.kind() == OpKind::kWeight ||
        std::any_of(node.inputs.begin(), node.inputs.end(), [&](TensorRef input) {
          return static_cast<bool>(reach.of_weights[input.node.value]);
        });
  }
  for (const Graph::NamedOutput& output : graph.outputs()) {
    if (output.name == loss) reach.to_loss[output.tensor.node.value] = true;
  }
  for (auto id = order.rbegin(); id != order.rend(); ++id) {
    if (!reach.to_loss[id->value]) continue;
    for (TensorRef input : graph.node(*id).inputs) reach.to_loss[input.node.value] = true;
  }
  return reach;
}

}  // namespace

double ModelFlops(const Graph& graph, absl::string_view loss) {
  const Reach reach = ReachOf(graph, loss);
  double flops = 0;
  for (NodeId id : graph.TopologicalOrder()) {
    const Node& node = graph.node(id);
    if (IsLeaf(node.op.kind())) continue;
    std::vector<TensorType> operands;
    std::vector<bool> wanted;
    bool any = false;
    for (TensorRef input : node.inputs) {
      operands.push_back(graph.type(input));
      const bool is_wanted = reach.to_loss[id.value] && reach.of_weights[input.node.value] &&
                             IsFloat(operands.back().dtype);
      wanted.push_back(is_wanted);
      any |= is_wanted;
    }
    const absl::StatusOr<Sharding> sharding = InferSharding(node.op, operands);
    if (!sharding.ok()) continue;
    flops += ForwardWork(node.op, *sharding, operands).flops;
    if (any) flops += GradientWork(node.op, *sharding, operands, wanted).flops;
  }
  return flops;
}

std::optional<int64_t> TokensOfBatch(const Graph& graph) {
  const std::vector<ModelInput> inputs = InputsForData(graph);
  for (const ModelInput& ids : inputs) {
    if (ids.is_label || !ids.range.is_integer || ids.type.rank() != 2) continue;
    const int64_t tokens = ids.type.NumElements();
    if (tokens == ids.type.dims[0].size) continue;
    for (const ModelInput& labels : inputs) {
      if (labels.is_class && labels.type.NumElements() == tokens) return tokens;
    }
  }
  return std::nullopt;
}

}  // namespace isomer
