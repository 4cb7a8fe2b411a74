// A graph that is rewritten in place, step by step, at a cost that depends on the step alone.
//
// Nodes are only added; uses are redirected. Beside the nodes it keeps who uses each of them, and
// how often, so that a use is found and a node known to be dead without a walk over the graph: a
// derivation of n steps on a graph of n nodes is replayed in linear time.
#ifndef ISOMER_VERIFIER_CERTIFICATE_REPLAY_GRAPH_H_
#define ISOMER_VERIFIER_CERTIFICATE_REPLAY_GRAPH_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "pcg/ir/graph.h"
#include "pcg/ir/plan.h"

namespace isomer {

class ReplayGraph {
 public:
  // REQUIRES: the graph is valid.
  explicit ReplayGraph(const Graph& graph);
  // Also knows the values of the model's constants.
  explicit ReplayGraph(const Model& model);

  int num_nodes() const { return static_cast<int>(nodes_.size()); }
  const Node& node(NodeId id) const { return nodes_[id.value]; }
  const TensorType& type(TensorRef ref) const { return nodes_[ref.node.value].outputs[ref.output]; }
  bool Contains(TensorRef ref) const;
  // Of a constant all of whose elements are one finite number; of other tensors none.
  std::optional<double> NumberOf(TensorRef ref) const;
  std::string Label(NodeId id) const;
  // False once nothing uses the node any more: no output of the graph and no live node. Leaves are
  // always live.
  bool IsLive(NodeId id) const { return live_[id.value]; }

  // Ok if `nodes` are there, each once, and live: a step at nodes that nothing needs would change
  // nothing and prove nothing.
  absl::Status CheckReplaceable(const std::vector<NodeId>& nodes) const;
  // Ok unless the call rounds integers: steps are equations over the reals.
  absl::Status CheckNoRounding(NodeId id) const;

  // Adds a call, its types inferred (once for equal calls).
  absl::Status Add(Operator op, std::vector<TensorRef> inputs);
  // Every use of `from`, but by nodes from `first_new` on, becomes a use of `to`.
  // REQUIRES: equal types.
  void ReplaceUses(TensorRef from, TensorRef to, NodeId first_new);

  // The graph so far. An error: it has a cycle.
  absl::StatusOr<Graph> ToGraph() const { return GraphFromParts(nodes_, outputs_); }

  // Ok if this graph is `planned`: the calls that lead to the outputs are those of `planned`, equal
  // calls merged; leaves go by name. The error names the first difference.
  // REQUIRES: `planned` is valid (so that this graph has no cycle if it is the same).
  absl::Status CheckSame(const Graph& planned) const;

 private:
  // Drops uses that dead nodes have, from `id` on.
  void DropIfUnused(int32_t id);

  std::vector<Node> nodes_;
  const Model* model_ = nullptr;  // that has the values of constants
  std::vector<Graph::NamedOutput> outputs_;
  std::vector<bool> live_;
  std::vector<int32_t> uses_;                // per node: by outputs and by live nodes
  std::vector<std::vector<int32_t>> users_;  // per node: those that used it when they were added
  struct InferredCall {
    Operator op;
    std::vector<TensorType> operands, outputs;
  };
  absl::flat_hash_map<uint64_t, std::vector<InferredCall>> inferred_;
};

}  // namespace isomer

#endif  // ISOMER_VERIFIER_CERTIFICATE_REPLAY_GRAPH_H_
