// A graph with its repeated layers folded: operators that differ in the numbers of their names
// alone are one node, drawn once.
#ifndef ISOMER_OPTIMIZER_REPORT_FOLDED_GRAPH_H_
#define ISOMER_OPTIMIZER_REPORT_FOLDED_GRAPH_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "pcg/ir/graph.h"

namespace isomer {

struct FoldedNode {
  enum class Kind {
    kInput,
    kCall,
    kMove,  // a chain of parallel operators
  };
  Kind kind = Kind::kCall;
  std::string label;                 // "matmul", "combine, partition"
  std::string name;                  // "layer*/attention/query/product"
  int64_t count = 0;                 // calls, or chains
  std::vector<NodeId> first = {};    // the first of them; of a chain all of it, in order
  std::vector<NodeId> members = {};  // in topological order; of moves, all of each chain
};

struct FoldedEdge {
  int from = 0, to = 0;
  int64_t count = 0;
  TensorRef tensor;      // the first
  bool returns = false;  // to a node that comes earlier, as from one layer to the next
};

// Without what depends on weights alone: stored tensors, and what the host makes of them.
struct FoldedGraph {
  std::vector<FoldedNode> nodes;  // by their first members, in topological order
  std::vector<FoldedEdge> edges;
  std::vector<int> node_of;  // per node of the graph; -1: it is left out
};

// Graphs of up to so many nodes are shown without folding, too.
inline constexpr size_t kMostUnfolded = 160;

// Nodes are one if their folded names, operators, types and `more`(node) are equal. Without
// `folds` every operator is a node.
FoldedGraph Fold(
    const Graph& graph, bool folds,
    absl::FunctionRef<std::string(NodeId id)> more = [](NodeId) { return std::string(); });

}  // namespace isomer

#endif  // ISOMER_OPTIMIZER_REPORT_FOLDED_GRAPH_H_
