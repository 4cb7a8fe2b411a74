#include "optimizer/report/folded_graph.h"

#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "optimizer/report/folded_name.h"
#include "optimizer/sharding/batch_dims.h"

namespace isomer {
namespace {

class Folding {
 public:
  Folding(const Graph& graph, bool folds, absl::FunctionRef<std::string(NodeId)> more)
      : graph_(graph), folds_(folds), more_(more), users_(graph.Users()) {
    folded_.node_of.assign(graph.num_nodes(), -1);
    heads_.assign(graph.num_nodes(), NodeId{});
  }

  FoldedGraph Run() {
    const std::vector<bool> of_data = OfData(graph_);
    const std::vector<NodeId> order = graph_.TopologicalOrder();
    for (NodeId id : order) {
      if (of_data[id.value]) FindHead(id);
    }
    for (NodeId id : order) {
      if (of_data[id.value]) AddNode(id);
    }
    for (NodeId id : order) {
      if (of_data[id.value]) AddEdges(id);
    }
    return std::move(folded_);
  }

 private:
  bool IsMove(NodeId id) const { return IsParallel(graph_.node(id).op.kind()); }

  // A parallel operator continues the chain of its operand if nothing else uses that.
  void FindHead(NodeId id) {
    heads_[id.value] = id;
    if (!IsMove(id)) return;
    const NodeId operand = graph_.node(id).inputs[0].node;
    const bool continues = IsMove(operand) && users_[operand.value].size() == 1;
    if (continues) heads_[id.value] = heads_[operand.value];
    std::string& chain = chains_[heads_[id.value]];
    absl::StrAppend(&chain, chain.empty() ? "" : ", ", graph_.node(id).op.ToString());
  }

  std::string KeyOf(NodeId id) const {
    const Node& node = graph_.node(id);
    if (!folds_) return absl::StrCat(id.value);
    std::string key = absl::StrCat(FoldedName(node.name), "|", more_(id), "|");
    if (IsMove(id)) {
      // Names of parallel operators say little: they are told apart by what they move.
      absl::StrAppend(&key, chains_.at(id), "|", folded_.node_of[node.inputs[0].node.value]);
    } else {
      absl::StrAppend(&key, node.op.ToString());
    }
    for (const TensorType& type : node.outputs) absl::StrAppend(&key, "|", type.ToString());
    return key;
  }

  void AddNode(NodeId id) {
    const NodeId head = heads_[id.value];
    const Node& node = graph_.node(id);
    if (head != id) {
      const int place = folded_.node_of[head.value];
      folded_.node_of[id.value] = place;
      FoldedNode& chain = folded_.nodes[place];
      chain.members.push_back(id);
      if (head == chain.first[0]) {
        chain.first.push_back(id);
        absl::StrAppend(&chain.label, ", ", node.op.name());
      }
      return;
    }
    const auto [it, added] = places_.try_emplace(KeyOf(id), static_cast<int>(folded_.nodes.size()));
    if (added) {
      folded_.nodes.push_back({.kind = IsLeaf(node.op.kind()) ? FoldedNode::Kind::kInput
                                       : IsMove(id)           ? FoldedNode::Kind::kMove
                                                              : FoldedNode::Kind::kCall,
                               .label = std::string(node.op.name()),
                               .name = folds_ ? FoldedName(node.name) : node.name});
    }
    folded_.node_of[id.value] = it->second;
    FoldedNode& folded = folded_.nodes[it->second];
    if (added) folded.first = {id};
    ++folded.count;
    folded.members.push_back(id);
  }

  void AddEdges(NodeId id) {
    const int to = folded_.node_of[id.value];
    for (TensorRef input : graph_.node(id).inputs) {
      const int from = folded_.node_of[input.node.value];
      if (from < 0 || heads_[id.value] == heads_[input.node.value]) continue;
      const auto [it, added] =
          edges_.try_emplace({from, to}, static_cast<int>(folded_.edges.size()));
      if (added) folded_.edges.push_back({.from = from, .to = to, .tensor = input});
      FoldedEdge& edge = folded_.edges[it->second];
      ++edge.count;
      edge.returns = from >= to;
    }
  }

  const Graph& graph_;
  const bool folds_;
  const absl::FunctionRef<std::string(NodeId)> more_;
  const std::vector<std::vector<Graph::Use>> users_;
  std::vector<NodeId> heads_;             // per node: the first of its chain, or itself
  std::map<NodeId, std::string> chains_;  // operators of a chain, by its first
  std::map<std::string, int> places_;
  std::map<std::pair<int, int>, int> edges_;
  FoldedGraph folded_;
};

}  // namespace

FoldedGraph Fold(const Graph& graph, bool folds, absl::FunctionRef<std::string(NodeId id)> more) {
  return Folding(graph, folds, more).Run();
}

}  // namespace isomer
