#include "models/onnx/graph/broadcast_constants.h"

#include <cstdint>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "models/onnx/graph/repeated_constant.h"
#include "pcg/ir/operator_facts.h"

namespace isomer {
namespace {

class Rewriter {
 public:
  explicit Rewriter(const Graph& graph) : graph_(graph), ids_(graph.num_nodes()) {}

  Graph Rewritten() {
    for (NodeId id : graph_.TopologicalOrder()) {
      const Node& node = graph_.node(id);
      if (IsLeaf(node.op.kind())) {
        ids_[id.value] = kept_.AddLeaf(node.op.kind(), node.name, node.outputs[0]).node;
      } else if (!IsRepetition({id, 0})) {
        ids_[id.value] = *kept_.Add(node.op, OperandsOf(node), node.name);
      }
    }
    for (const Graph::NamedOutput& output : graph_.outputs()) {
      kept_.AddOutput(output.name, Kept(output.tensor));
    }
    return std::move(kept_);
  }

 private:
  bool IsRepetition(TensorRef x) const {
    const Node& node = graph_.node(x.node);
    return node.op.kind() == OpKind::kExpand &&
           graph_.node(node.inputs[0].node).op.kind() == OpKind::kConstant;
  }

  // The tensor in the new graph; a repetition is added to it at its first use.
  TensorRef Kept(TensorRef x) {
    if (IsRepetition(x) && repetitions_.count(x.node) == 0) {
      const Node& node = graph_.node(x.node);
      repetitions_[x.node] = *kept_.Add(node.op, {Kept(node.inputs[0])}, node.name);
    }
    const auto repetition = repetitions_.find(x.node);
    return {repetition == repetitions_.end() ? ids_[x.node.value] : repetition->second, x.output};
  }

  std::vector<TensorRef> OperandsOf(const Node& node) {
    std::vector<TensorRef> operands = node.inputs;
    if (BroadcastSizes(operands) == node.outputs[0].Sizes() && IsElementwise(node)) {
      for (TensorRef& operand : operands) {
        if (!IsRepetition(operand)) continue;
        const TensorRef repeated = operand;
        operand = graph_.node(operand.node).inputs[0];
        if (BroadcastSizes(operands) != node.outputs[0].Sizes()) operand = repeated;
      }
    }
    for (TensorRef& operand : operands) operand = Kept(operand);
    return operands;
  }

  bool IsElementwise(const Node& node) const {
    std::vector<Shape> shapes;
    for (TensorRef input : node.inputs) shapes.push_back(graph_.type(input).GlobalShape());
    const absl::StatusOr<Declaration> declaration = Declare(node.op, shapes);
    return declaration.ok() && IsPointwise(*declaration);
  }

  std::optional<std::vector<int64_t>> BroadcastSizes(const std::vector<TensorRef>& operands) const {
    std::vector<std::vector<int64_t>> sizes;
    for (TensorRef operand : operands) sizes.push_back(graph_.type(operand).Sizes());
    return BroadcastDims(sizes);
  }

  const Graph& graph_;
  Graph kept_;
  std::vector<NodeId> ids_;               // new ones, of nodes that are no repetitions
  std::map<NodeId, NodeId> repetitions_;  // new ones, of those that are needed
};

}  // namespace

void BroadcastConstants(Model* model) { model->graph = Rewriter(model->graph).Rewritten(); }

}  // namespace isomer
