#include "pcg/schedule/order/execution_order.h"

#include <algorithm>
#include <limits>
#include <map>
#include <numeric>
#include <utility>

namespace isomer {
namespace {

// A branch that is shorter than others is tried at so many places beside them.
constexpr int kMostPlaces = 64;

// Halves of levels: level l is 2 l, and between it and the next is 2 l + 1.
class Levels {
 public:
  Levels(const Graph& graph, const std::vector<NodeId>& order, const std::vector<bool>& is_move,
         const std::vector<bool>& is_fused)
      : graph_(graph), order_(order), before_(graph.num_nodes(), 0), behind_(before_) {
    std::vector<bool> sends(graph.num_nodes(), false);
    for (NodeId id : order) {
      const Node& node = graph.node(id);
      int& before = before_[id.value];
      for (TensorRef input : node.inputs) {
        before = std::max(before, behind_[input.node.value]);
      }
      behind_[id.value] = before;
      if (!is_move[id.value]) continue;
      const int operand = node.inputs[0].node.value;
      sends[id.value] =
          node.op.kind() != OpKind::kPartition || (is_fused[operand] && sends[operand]);
      if (!is_fused[id.value] && sends[id.value]) ++behind_[id.value];
    }
  }

  std::vector<int> AsSoonAsPossible() const {
    std::vector<int> levels;
    for (int before : before_) levels.push_back(2 * before);
    return levels;
  }

  // `of_weights`: nodes that are on no branch.
  std::vector<int> Spread(const std::vector<bool>& of_weights) const {
    const std::vector<int> slack = SlackOf(of_weights);
    std::vector<int> levels = AsSoonAsPossible();
    // How much there is to compute between a level and the next, beside the longest branch.
    std::vector<int> filled(*std::max_element(behind_.begin(), behind_.end()) + 1, 0);
    for (const Branch& branch : BranchesOf(slack)) {
      int best = 0, least = std::numeric_limits<int>::max();
      for (int shift = 0; shift < std::min(branch.slack, kMostPlaces); ++shift) {
        const int there = std::accumulate(filled.begin() + branch.first + shift,
                                          filled.begin() + branch.last + shift + 1, 0);
        if (there < least) best = shift;
        least = std::min(least, there);
      }
      for (int level = branch.first; level <= branch.last; ++level) ++filled[level + best];
      for (int id : branch.nodes) levels[id] += 2 * best + 1;
    }
    return levels;
  }

 private:
  // Nodes that are connected by nodes none of which is on a longest path.
  struct Branch {
    std::vector<int> nodes;
    int first = std::numeric_limits<int>::max(), last = 0;  // levels
    int slack = std::numeric_limits<int>::max();
  };

  // By how many levels a node can come later without making the whole longer.
  std::vector<int> SlackOf(const std::vector<bool>& of_weights) const {
    std::vector<int> after(graph_.num_nodes(), 0), slack(after);
    int most = 0;
    for (auto id = order_.rbegin(); id != order_.rend(); ++id) {
      after[id->value] += behind_[id->value] - before_[id->value];
      if (of_weights[id->value]) continue;
      most = std::max(most, before_[id->value] + after[id->value]);
      for (TensorRef input : graph_.node(*id).inputs) {
        after[input.node.value] = std::max(after[input.node.value], after[id->value]);
      }
    }
    for (NodeId id : order_) {
      if (!of_weights[id.value]) slack[id.value] = most - before_[id.value] - after[id.value];
    }
    return slack;
  }

  // The longest first.
  std::vector<Branch> BranchesOf(const std::vector<int>& slack) const {
    std::vector<int> root(graph_.num_nodes());
    std::iota(root.begin(), root.end(), 0);
    const auto find = [&root](int id) {
      while (root[id] != id) id = root[id] = root[root[id]];
      return id;
    };
    for (NodeId id : order_) {
      for (TensorRef input : graph_.node(id).inputs) {
        if (slack[id.value] > 0 && slack[input.node.value] > 0) {
          root[find(id.value)] = find(input.node.value);
        }
      }
    }
    std::map<int, Branch> by_root;
    for (NodeId id : order_) {
      if (slack[id.value] == 0) continue;
      Branch& branch = by_root[find(id.value)];
      branch.nodes.push_back(id.value);
      branch.first = std::min(branch.first, before_[id.value]);
      branch.last = std::max(branch.last, before_[id.value]);
      branch.slack = std::min(branch.slack, slack[id.value]);
    }
    std::vector<Branch> branches;
    for (auto& [id, branch] : by_root) branches.push_back(std::move(branch));
    std::stable_sort(branches.begin(), branches.end(), [](const Branch& a, const Branch& b) {
      return a.last - a.first > b.last - b.first;
    });
    return branches;
  }

  const Graph& graph_;
  const std::vector<NodeId>& order_;
  std::vector<int> before_, behind_;  // exchanges before a node, and before its users
};

}  // namespace

std::vector<NodeId> ExecutionOrder(const Graph& graph, std::vector<NodeId> order,
                                   const std::vector<bool>& is_move,
                                   const std::vector<bool>& is_fused, bool spread) {
  const int n = graph.num_nodes();
  std::vector<bool> of_weights(n, false);
  for (NodeId id : order) {
    const Node& node = graph.node(id);
    of_weights[id.value] = node.op.kind() != OpKind::kInput &&
                           std::all_of(node.inputs.begin(), node.inputs.end(),
                                       [&](TensorRef i) { return of_weights[i.node.value]; });
  }
  const Levels levels(graph, order, is_move, is_fused);
  std::vector<int> level = spread ? levels.Spread(of_weights) : levels.AsSoonAsPossible();
  // What is made of weights alone is made for its first user: what comes before it may be all of
  // the step, in which it would take memory, and so would its gradient.
  std::vector<int> first_user(n, std::numeric_limits<int>::max());
  for (auto id = order.rbegin(); id != order.rend(); ++id) {
    const bool is_used = first_user[id->value] != std::numeric_limits<int>::max();
    if (of_weights[id->value] && is_used && !is_move[id->value]) {
      level[id->value] = first_user[id->value];
    }
    for (TensorRef input : graph.node(*id).inputs) {
      int& first = first_user[input.node.value];
      first = std::min(first, level[id->value]);
    }
  }
  // What an exchange has behind it is counted in no node before it, so this is topological.
  std::stable_sort(order.begin(), order.end(),
                   [&](NodeId a, NodeId b) { return level[a.value] < level[b.value]; });
  return order;
}

}  // namespace isomer
