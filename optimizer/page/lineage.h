// Which steps of a derivation made each operator of a plan.
//
// A step adds nodes behind those that there are, and redirects uses. Here nodes are added and uses
// are not redirected: redirections are kept, and followed when the grown graph is held against the
// plan's. So 10,000 steps take a fraction of a second; steps are not checked (isomer-verify does).
#ifndef ISOMER_OPTIMIZER_PAGE_LINEAGE_H_
#define ISOMER_OPTIMIZER_PAGE_LINEAGE_H_

#include <cstdint>
#include <map>
#include <vector>

#include "absl/status/statusor.h"
#include "pcg/ir/graph.h"
#include "pcg/ir/plan.h"
#include "rules/language/rule.h"

namespace isomer {

inline constexpr int kOfTheModel = -1;  // in place of a step: no step made it
inline constexpr int kNotKnown = -2;

class Lineage {
 public:
  // Errors: a step names a rule that is not there, or a node that is not.
  static absl::StatusOr<Lineage> Of(const Plan& plan, const RuleSet& rules);

  // The model's nodes, then those of each step.
  const Graph& grown() const { return grown_; }
  // The nodes that a step added: [AddedBy(s), AddedBy(s + 1)).
  int AddedBy(int step) const { return first_of_step_[step]; }
  int StepOf(NodeId grown) const { return step_of_[grown.value]; }

  // The steps to a node of the grown graph, the last being that which made it: those that made
  // what it was made of, as far as these are calls.
  std::vector<int> StepsTo(const Plan& plan, NodeId grown) const;

  // Per node of `graph`, the plan's in its precision, the node of the grown graph that it is; {-1}:
  // not known, as of casts that the precision adds.
  std::vector<NodeId> Match(const Graph& graph) const;

 private:
  struct Redirection {
    int step;
    int first_new;  // uses by nodes before this one were redirected
    TensorRef to;
  };
  absl::Status Apply(const DerivationStep& step, const RuleSet& rules);
  absl::Status ApplyStated(const DerivationStep& step);
  void Redirect(TensorRef from, TensorRef to, int first_new);
  // What `user` reads in the end that read `tensor` at first; user -1: an output of the graph.
  TensorRef Resolve(TensorRef tensor, int user) const;

  Graph grown_;
  std::vector<int> step_of_, first_of_step_;
  std::map<TensorRef, std::vector<Redirection>> redirections_;
};

}  // namespace isomer

#endif  // ISOMER_OPTIMIZER_PAGE_LINEAGE_H_
