#include "tests/models/model_values.h"

#include <map>
#include <utility>

#include "pcg/ir/operator_facts.h"

namespace isomer {

absl::StatusOr<Values<double>> EvaluateModel(
    const Model& model, absl::FunctionRef<void(const Node&, Array<double>*)> fill) {
  std::map<NodeId, Value<double>> leaves;
  for (int id = 0; id < model.graph.num_nodes(); ++id) {
    const Node& node = model.graph.node({id});
    if (!IsLeaf(node.op.kind())) continue;
    Array<double> array(node.outputs[0].Sizes());
    const auto stored = model.weights.find(node.name);
    if (stored != model.weights.end()) {
      array.data.assign(stored->second.begin(), stored->second.end());
    } else {
      fill(node, &array);
    }
    leaves[{id}] = {node.outputs[0], {std::move(array)}};
  }
  return EvaluateGraph<double>(model.graph, leaves);
}

}  // namespace isomer
