// Rewrites of a graph without rules: each is stated and applied if it is proved.
#ifndef ISOMER_OPTIMIZER_CANONICAL_STATED_REWRITE_H_
#define ISOMER_OPTIMIZER_CANONICAL_STATED_REWRITE_H_

#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "pcg/ir/plan.h"
#include "rules/language/rule.h"

namespace isomer {

// Whether the sides have equal outputs. `numbers`: inputs that are scalar constants.
using AreEqual = std::function<bool(const ConcreteSide& source, const ConcreteSide& target,
                                    const std::map<int, double>& numbers)>;

// A graph under steps without rules (DerivationStep). Replaced nodes stay, unused.
class StatedRewriter {
 public:
  // `numbers_of`: provides the values of constants.
  StatedRewriter(const Model& numbers_of, Graph graph, const AreEqual& equal)
      : model_(&numbers_of), graph_(std::move(graph)), equal_(&equal) {}

  const Graph& graph() const { return graph_; }
  NodeId next_id() const { return NodeId{graph_.num_nodes()}; }

  // Replaces `step.nodes` by `step.calls`, named `names`, if types agree and `equal` proves it;
  // returns whether it did. REQUIRES: the step's nodes are in topological order; ids of the calls
  // start at next_id().
  bool Try(DerivationStep step, const std::vector<std::string>& names);

  std::vector<DerivationStep> TakeSteps() { return std::move(steps_); }

 private:
  bool IsShown(const DerivationStep& step, const std::vector<std::vector<TensorType>>& types);

  const Model* model_;
  Graph graph_;
  const AreEqual* equal_;
  std::vector<DerivationStep> steps_;
  std::map<std::string, bool> known_;  // memo: layers repeat
};

}  // namespace isomer

#endif  // ISOMER_OPTIMIZER_CANONICAL_STATED_REWRITE_H_
