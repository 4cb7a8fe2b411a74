// Rewrites of a graph that are stated, call by call, and made if they are shown.
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

// Whether the sides have equal outputs. `numbers`: inputs that are constants of one number.
using AreEqual = std::function<bool(const ConcreteSide& source, const ConcreteSide& target,
                                    const std::map<int, double>& numbers)>;

// A graph that grows by steps without a rule (DerivationStep). What a step replaces stays, unused.
class StatedRewriter {
 public:
  // `numbers_of`: has the values of constants.
  StatedRewriter(const Model& numbers_of, Graph graph, const AreEqual& equal)
      : model_(&numbers_of), graph_(std::move(graph)), equal_(&equal) {}

  const Graph& graph() const { return graph_; }
  NodeId next_id() const { return NodeId{graph_.num_nodes()}; }

  // Puts `step.calls` in the place of `step.nodes` where these may be: if the types are those of
  // what is replaced, and `equal` says so. The calls get `names`.
  // REQUIRES: the step's nodes are in topological order; ids of the calls are from next_id() on.
  bool Try(DerivationStep step, const std::vector<std::string>& names);

  std::vector<DerivationStep> TakeSteps() { return std::move(steps_); }

 private:
  bool IsShown(const DerivationStep& step, const std::vector<std::vector<TensorType>>& types);

  const Model* model_;
  Graph graph_;
  const AreEqual* equal_;
  std::vector<DerivationStep> steps_;
  std::map<std::string, bool> known_;  // layers are alike
};

}  // namespace isomer

#endif  // ISOMER_OPTIMIZER_CANONICAL_STATED_REWRITE_H_
