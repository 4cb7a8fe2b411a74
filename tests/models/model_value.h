#ifndef ISOMER_TESTS_MODELS_MODEL_VALUE_H_
#define ISOMER_TESTS_MODELS_MODEL_VALUE_H_

#include <gtest/gtest.h>

#include <map>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "pcg/evaluation/evaluator.h"
#include "pcg/ir/plan.h"

namespace isomer {

// The first output of a model whose only input holds `input`; empty where the model is an error.
inline std::vector<double> ModelValue(const absl::StatusOr<Model>& model,
                                      const std::vector<double>& input) {
  EXPECT_TRUE(model.ok()) << model.status();
  if (!model.ok()) return {};
  std::map<NodeId, Value<double>> leaves;
  for (int id = 0; id < model->graph.num_nodes(); ++id) {
    const Node& node = model->graph.node(id);
    if (!IsLeaf(node.op.kind())) continue;
    Array<double> array(node.outputs[0].Sizes());
    if (node.op.kind() == OpKind::kInput) {
      array.data = input;
    } else {
      const StoredValues& values = model->weights.at(node.name);
      array.data.assign(values.begin(), values.end());
    }
    leaves[NodeId{id}] = {node.outputs[0], {std::move(array)}};
  }
  const auto values = EvaluateGraph(model->graph, leaves);
  EXPECT_TRUE(values.ok()) << values.status();
  if (!values.ok()) return {};
  const TensorRef y = model->graph.outputs()[0].tensor;
  return (*values)[y.node.value][y.output].parts[0].data;
}

}  // namespace isomer

#endif  // ISOMER_TESTS_MODELS_MODEL_VALUE_H_
