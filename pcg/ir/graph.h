// The parallel computation graph (PCG).
//
// Nodes are operators; an edge is a use of a TensorRef, one output of a node. Ids are dense and in
// order of creation. A graph only grows: rewriting adds nodes and redirects uses (ReplaceUses), and
// Canonical() drops what no output needs, merges equal nodes and numbers nodes afresh, in an order
// that depends on the structure alone.
#ifndef ISOMER_PCG_IR_GRAPH_H_
#define ISOMER_PCG_IR_GRAPH_H_

#include <compare>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "pcg/ir/operator.h"
#include "pcg/ir/tensor_type.h"

namespace isomer {

struct NodeId {
  int32_t value = -1;
  friend auto operator<=>(const NodeId&, const NodeId&) = default;
  template <typename H>
  friend H AbslHashValue(H h, NodeId id) {
    return H::combine(std::move(h), id.value);
  }
};

struct TensorRef {
  NodeId node;
  int32_t output = 0;
  friend auto operator<=>(const TensorRef&, const TensorRef&) = default;
  template <typename H>
  friend H AbslHashValue(H h, TensorRef ref) {
    return H::combine(std::move(h), ref.node, ref.output);
  }
};

struct Node {
  Operator op;
  std::vector<TensorRef> inputs;
  std::vector<TensorType> outputs;
  std::string name;  // of leaves: unique, what files call it; of others: where it came from
};

class Graph {
 public:
  // Leaves. REQUIRES: `type` is valid. Names of leaves must be unique; Validate() checks.
  TensorRef AddLeaf(OpKind kind, std::string name, TensorType type);  // REQUIRES: IsLeaf(kind)
  TensorRef AddInput(std::string name, TensorType type);
  TensorRef AddWeight(std::string name, TensorType type);
  // A weight that is not trained.
  TensorRef AddConstant(std::string name, TensorType type);
  // Adds a call, its types inferred. The error names the operator, dims and degrees, and `name`.
  absl::StatusOr<NodeId> Add(Operator op, std::vector<TensorRef> inputs, std::string name = "");
  // Add for operators of one output.
  absl::StatusOr<TensorRef> AddOp(Operator op, std::vector<TensorRef> inputs,
                                  std::string name = "");
  void AddOutput(std::string name, TensorRef tensor);

  int num_nodes() const { return static_cast<int>(nodes_.size()); }
  const Node& node(NodeId id) const { return nodes_[id.value]; }
  const Node& node(int id) const { return nodes_[id]; }
  const TensorType& type(TensorRef ref) const { return nodes_[ref.node.value].outputs[ref.output]; }
  bool Contains(TensorRef ref) const;
  struct NamedOutput {
    std::string name;
    TensorRef tensor;
  };
  const std::vector<NamedOutput>& outputs() const { return outputs_; }

  // Every use of `from`, graph outputs included, becomes a use of `to`.
  // REQUIRES: equal types (so that users keep theirs), and `to` does not depend on a user of `from`
  // other than through `from` itself; Validate() would report a cycle.
  // Uses by nodes from `except_from` on stay: those of a subgraph just added that takes `from`.
  void ReplaceUses(TensorRef from, TensorRef to, NodeId except_from = {INT32_MAX});
  void set_name(NodeId id, std::string name) { nodes_[id.value].name = std::move(name); }

  // Nodes that an output (or a leaf's being there) needs, each after its inputs, smallest id first
  // among those that are ready. Leaves are always included. Nodes on a cycle are left out.
  std::vector<NodeId> TopologicalOrder() const;
  // For every node, the uses of its outputs among live nodes: (user, operand index).
  struct Use {
    NodeId user;
    int operand;
  };
  std::vector<std::vector<Use>> Users() const;

  // Dead nodes dropped, equal nodes (same operator, same inputs) merged, ids in topological order.
  // `new_ids` receives the new id of every old node (or -1).
  Graph Canonical(std::vector<NodeId>* new_ids = nullptr) const;
  // Equal for graphs that Canonical() makes equal; ignores names of non-leaves.
  uint64_t StructuralHash() const;

  // Checks references, cycles, operand counts, leaf names and that every type is what inference
  // gives. The error names node and dim.
  absl::Status Validate() const;

  // The text form, one node a line; ParseGraph reads it back.
  //   %2 = matmul(%0, %1) : f32[8,32]  # layer0/q
  std::string ToString() const;
  std::string ToDot() const;

  // A label for messages: "%3 matmul 'layer0/q'".
  std::string Label(NodeId id) const;

 private:
  friend absl::StatusOr<Graph> GraphFromParts(std::vector<Node>, std::vector<NamedOutput>);
  std::vector<Node> nodes_;
  std::vector<NamedOutput> outputs_;
};

// Assembles and validates a graph that was read from a file.
absl::StatusOr<Graph> GraphFromParts(std::vector<Node> nodes,
                                     std::vector<Graph::NamedOutput> outputs);

// Parses ToString()'s form. Errors name the line.
absl::StatusOr<Graph> ParseGraph(absl::string_view text);

}  // namespace isomer

#endif  // ISOMER_PCG_IR_GRAPH_H_
