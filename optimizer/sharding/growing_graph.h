// A graph under many rewriting steps.
//
// A step costs as much as it adds and as the replaced tensors have uses, independently of the
// graph's size (Graph::ReplaceUses visits every node), and a step is checked once: it is recorded
// on a small graph of just the nodes that it matches, where ApplyStep checks it in full, and then
// copied wherever the same call or chain occurs. So a deep model of repeated layers takes time
// linear in its operators.
#ifndef ISOMER_OPTIMIZER_SHARDING_GROWING_GRAPH_H_
#define ISOMER_OPTIMIZER_SHARDING_GROWING_GRAPH_H_

#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "pcg/ir/graph.h"
#include "pcg/ir/plan.h"
#include "rules/language/rule.h"

namespace isomer {

// Steps on a small graph, with its ids.
class RecordedSteps {
 public:
  // Applies the step to `graph` and records it. Errors: those of ApplyStep.
  absl::Status Apply(const Rule& rule, DerivationStep step, Graph* graph);

 private:
  friend class GrowingGraph;
  struct Recorded {
    DerivationStep step;
    std::vector<Node> added;
    std::vector<std::pair<TensorRef, TensorRef>> replaced;  // source outputs by target outputs
  };
  std::vector<Recorded> steps_;
};

class GrowingGraph {
 public:
  explicit GrowingGraph(const Graph& graph);

  int num_nodes() const { return static_cast<int>(nodes_.size()); }
  const Node& node(NodeId id) const { return nodes_[id.value]; }
  const TensorType& type(TensorRef ref) const { return nodes_[ref.node.value].outputs[ref.output]; }
  void set_name(NodeId id, std::string name) { nodes_[id.value].name = std::move(name); }

  // Applies recorded steps, and appends them with this graph's ids to `steps`. `place[i]` is the
  // image of node i of the small graph: a tensor for leaves, else a node (output 0). Nodes that the
  // steps add are appended to it. REQUIRES: types and operators equal those of the small graph.
  void Apply(const RecordedSteps& recorded, std::vector<TensorRef>* place,
             std::vector<DerivationStep>* steps);

  // Puts one node in the place of equal ones (same operator, same inputs), and returns it. The step
  // states itself, as no rule merges.
  NodeId Merge(const std::vector<NodeId>& equal, std::vector<DerivationStep>* steps);

  // The current graph.
  absl::StatusOr<Graph> Build() &&;

 private:
  struct Use {
    int user, operand;
  };
  void AddUses(int id);
  // Replaces uses by nodes below `end` and by the graph's outputs.
  void ReplaceUses(TensorRef from, TensorRef to, int end);

  std::vector<Node> nodes_;
  std::vector<Graph::NamedOutput> outputs_;
  std::vector<std::vector<Use>> uses_;  // per node
};

}  // namespace isomer

#endif  // ISOMER_OPTIMIZER_SHARDING_GROWING_GRAPH_H_
