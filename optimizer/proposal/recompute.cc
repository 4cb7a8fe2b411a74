#include "optimizer/proposal/recompute.h"

#include <algorithm>
#include <set>

#include "optimizer/sharding/batch_dims.h"
#include "optimizer/simulator/segments.h"
#include "pcg/ir/operator_facts.h"
#include "pcg/ir/type_inference.h"
#include "pcg/profile/work.h"

namespace isomer {
namespace {

// All that is worth computing again, as if every result were kept: what borders are depends little
// on it.
std::vector<NodeId> BetweenBorders(const Graph& graph) {
  std::vector<NodeResults> results(graph.num_nodes());
  for (int i = 0; i < graph.num_nodes(); ++i) {
    if (IsLeaf(graph.node({i}).op.kind()) || IsParallel(graph.node({i}).op.kind())) continue;
    NodeResults& made = results[i];
    for (const TensorType& type : graph.node({i}).outputs) made.bytes += type.LocalBytes();
    made.kept_bytes = made.bytes;
    made.us = static_cast<double>(made.bytes);
  }
  const auto levels = LevelsOfRecomputation(SegmentsToRecompute(graph, results), 1);
  return levels.empty() ? std::vector<NodeId>() : levels.back();
}

// From a product of two activations through a softmax to the next product, which itself is kept:
// its result is as small as what it is made from.
class AttentionInside {
 public:
  explicit AttentionInside(const Graph& graph)
      : graph_(graph), of_data_(OfData(graph)), leads_from_(graph.num_nodes(), false) {}

  std::vector<NodeId> Nodes() {
    std::vector<bool> from_softmax(graph_.num_nodes(), false);
    const std::vector<NodeId> order = graph_.TopologicalOrder();
    for (NodeId id : order) {
      const Node& node = graph_.node(id);
      const auto any = [&](const std::vector<bool>& of) {
        return std::any_of(node.inputs.begin(), node.inputs.end(),
                           [&](TensorRef input) { return of[input.node.value]; });
      };
      const bool starts = IsScores(node);
      const bool follows = Passes(node) && any(leads_from_);
      leads_from_[id.value] = starts || follows;
      from_softmax[id.value] = follows && (node.op.kind() == OpKind::kSoftmax || any(from_softmax));
    }
    // Of what leads from scores, that which a product reads behind a softmax.
    const std::vector<std::vector<Graph::Use>> users = graph_.Users();
    std::vector<bool> is_inside(graph_.num_nodes(), false);
    for (auto id = order.rbegin(); id != order.rend(); ++id) {
      if (!leads_from_[id->value]) continue;
      is_inside[id->value] =
          std::any_of(users[id->value].begin(), users[id->value].end(), [&](const Graph::Use& use) {
            return is_inside[use.user.value] ||
                   (from_softmax[id->value] && IsScores(graph_.node(use.user)));
          });
    }
    std::vector<NodeId> nodes;
    for (int i = 0; i < graph_.num_nodes(); ++i) {
      if (is_inside[i]) nodes.push_back({i});
    }
    return nodes;
  }

 private:
  // Of two activations.
  bool IsScores(const Node& node) const {
    return node.op.kind() == OpKind::kMatMul && of_data_[node.inputs[0].node.value] &&
           of_data_[node.inputs[1].node.value];
  }
  bool Passes(const Node& node) const {
    const OpKind kind = node.op.kind();
    if (kind == OpKind::kSoftmax || IsParallel(kind) || IsLayout(kind)) return true;
    std::vector<TensorType> operands;
    for (TensorRef input : node.inputs) operands.push_back(graph_.type(input));
    const absl::StatusOr<Sharding> sharding = InferSharding(node.op, operands);
    return sharding.ok() && IsPointwise(sharding->declaration);
  }

  const Graph& graph_;
  const std::vector<bool> of_data_;
  std::vector<bool> leads_from_;  // is scores, or made of them point by point
};

// What is worth more memory than time, of what a gradient needs.
class CheapResults {
 public:
  explicit CheapResults(const Graph& graph)
      : graph_(graph),
        of_data_(OfData(graph)),
        is_needed_(graph.num_nodes(), false),
        is_output_(graph.num_nodes(), false) {}

  std::vector<NodeId> Nodes() {
    for (const Graph::NamedOutput& output : graph_.outputs()) {
      is_output_[output.tensor.node.value] = true;
    }
    for (int i = 0; i < graph_.num_nodes(); ++i) MarkNeeds({i});
    std::vector<NodeId> nodes;
    for (int i = 0; i < graph_.num_nodes(); ++i) {
      if (IsCheap(graph_.node({i}), i)) nodes.push_back({i});
    }
    return nodes;
  }

 private:
  // What the gradient of a call needs; moves between devices need nothing, and what is moved is
  // needed where it was made if it is moved again.
  void MarkNeeds(NodeId id) {
    const Node& node = graph_.node(id);
    if (IsLeaf(node.op.kind()) || IsParallel(node.op.kind()) || !of_data_[id.value]) return;
    std::vector<TensorType> operands;
    for (TensorRef input : node.inputs) operands.push_back(graph_.type(input));
    const absl::StatusOr<Sharding> sharding = InferSharding(node.op, operands);
    if (!sharding.ok()) return;
    const GradientNeeds needs = NeedsOfGradient(node.op, sharding->declaration, operands);
    for (size_t o = 0; o < node.inputs.size(); ++o) {
      if (!needs.operands[o]) continue;
      for (NodeId from = node.inputs[o].node;; from = graph_.node(from).inputs[0].node) {
        is_needed_[from.value] = true;
        if (!IsParallel(graph_.node(from).op.kind())) break;
      }
    }
    for (bool output : needs.outputs) {
      if (output) is_needed_[id.value] = true;
    }
  }

  bool IsCheap(const Node& node, int id) const {
    const OpKind kind = node.op.kind();
    if (IsLeaf(kind) || !of_data_[id] || !is_needed_[id] || is_output_[id]) return false;
    if (IsParallel(kind)) {
      TensorRef made = node.inputs[0];
      while (IsParallel(graph_.node(made.node).op.kind())) made = graph_.node(made.node).inputs[0];
      return node.outputs[0].LocalBytes() > graph_.type(made).LocalBytes();
    }
    if (IsContraction(kind) || IsLoss(kind) || node.outputs.size() != 1) return false;
    return std::all_of(node.inputs.begin(), node.inputs.end(), [&](TensorRef input) {
      return !of_data_[input.node.value] || is_needed_[input.node.value];
    });
  }

  const Graph& graph_;
  const std::vector<bool> of_data_;
  std::vector<bool> is_needed_;  // by a gradient
  std::vector<bool> is_output_;
};

}  // namespace

std::vector<NodeId> RecomputedNodes(RecomputeMode mode, const Graph& graph) {
  switch (mode) {
    case RecomputeMode::kNone:
      return {};
    case RecomputeMode::kSelective: {
      std::set<NodeId> nodes;
      for (NodeId id : AttentionInside(graph).Nodes()) nodes.insert(id);
      for (NodeId id : CheapResults(graph).Nodes()) nodes.insert(id);
      return {nodes.begin(), nodes.end()};
    }
    case RecomputeMode::kFull:
      return BetweenBorders(graph);
  }
  return {};
}

std::vector<bool> KeptCalls(RecomputeMode mode, const Graph& graph, const ComputeGraph& compute) {
  std::vector<bool> again(graph.num_nodes(), false);
  for (NodeId id : RecomputedNodes(mode, graph)) again[id.value] = true;
  std::vector<bool> kept;
  for (const auto& node : compute.nodes) kept.push_back(!again[node.id.value]);
  return kept;
}

}  // namespace isomer
