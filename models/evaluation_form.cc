#include "models/evaluation_form.h"

#include <map>
#include <set>
#include <string>

#include "models/loss.h"
#include "pcg/support/status_macros.h"

namespace isomer {

absl::Status ToEvaluationForm(Model* model) {
  Graph& graph = model->graph;
  std::map<std::string, const BatchStatistics*> of_scale;
  for (const BatchStatistics& of : model->statistics) of_scale[of.scale] = &of;
  std::map<std::string, TensorRef> leaves;
  std::set<std::string> seeds;
  const int nodes = graph.num_nodes();
  for (int id = 0; id < nodes; ++id) {
    if (IsLeaf(graph.node(id).op.kind())) leaves[graph.node(id).name] = {NodeId{id}, 0};
  }
  for (int id = 0; id < nodes; ++id) {
    const Node node = graph.node(id);
    if (node.op.kind() == OpKind::kDropout) {
      seeds.insert(graph.node(node.inputs[1].node).name);
      graph.ReplaceUses({NodeId{id}, 0}, node.inputs[0]);
    } else if (node.op.kind() == OpKind::kBatchNormTraining) {
      const auto found = of_scale.find(graph.node(node.inputs[1].node).name);
      if (found == of_scale.end()) continue;
      const TensorRef mean = leaves.at(found->second->mean);
      const TensorRef variance = leaves.at(found->second->variance);
      ISOMER_ASSIGN_OR_RETURN(
          const NodeId norm,
          graph.Add(Operator(OpKind::kBatchNorm, {{"epsilon", node.op.Number("epsilon")}}),
                    {node.inputs[0], node.inputs[1], node.inputs[2], mean, variance}, node.name));
      graph.ReplaceUses({NodeId{id}, 0}, {norm, 0});
      graph.ReplaceUses({NodeId{id}, 1}, mean);
      graph.ReplaceUses({NodeId{id}, 2}, variance);
    }
  }
  if (graph.num_nodes() == nodes && seeds.empty()) return absl::OkStatus();
  graph = graph.Canonical();
  model->statistics.clear();
  return DropUnusedInputs(seeds, model);
}

}  // namespace isomer
