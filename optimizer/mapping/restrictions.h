// A user's constraints, resolved on a model: which choices they allow for every call.
//
// A constraint on a tensor binds the operator that computes it, or, for a stored or fed tensor, its
// readers. From there the sharding propagates, as in GShard (Lepikhin et al. 2020, section 3.2),
// through operators that map element to element, and to the operators that border on these.
// Propagated shardings give way: where a call cannot be split so, or another constraint is nearer,
// tensors are resharded. So a few annotations decide how a network is sharded, and the search
// decides the rest.
//
// Restricted calls are not rewritten by algebra: the new calls would not carry the restriction.
#ifndef ISOMER_OPTIMIZER_MAPPING_RESTRICTIONS_H_
#define ISOMER_OPTIMIZER_MAPPING_RESTRICTIONS_H_

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "optimizer/mapping/call_restriction.h"
#include "optimizer/mapping/cost_tables.h"
#include "optimizer/mapping/derivation.h"

namespace isomer {

class Restrictions {
 public:
  Restrictions() = default;
  // Errors, one line that begins with file and line: an unknown name (with the nearest known one),
  // a dim that does not exist or that no rule splits so, devices out of range, and contradictions,
  // with both sources.
  static absl::StatusOr<Restrictions> Resolve(const Constraints& constraints, const Graph& graph,
                                              CostTables* tables);

  // For a search over other choices than the plan's: the same nodes are kept from rewriting, with
  // any choice.
  Restrictions AnyChoice() const;

  bool empty() const { return of_node_.empty() && stages_.empty(); }
  // Whether any call is restricted otherwise than to a stage.
  bool restrict_calls() const;
  // Null: the node of the model's graph is unrestricted.
  const CallRestriction* Of(NodeId node) const;
  // Pipeline stages of constrained nodes; a plan without a pipeline has one stage.
  const std::map<NodeId, int64_t>& stages() const { return stages_; }
  int64_t least_stages() const;

  // The stated constraints that `mapped`, on a rewrite of the model's graph, violates: one line
  // each, beginning with the constraint's file and line. Propagated shardings are not checked.
  std::vector<std::string> Violations(const MappedModel& mapped) const;

 private:
  friend class RestrictionResolver;
  struct OfNode {
    CallRestriction all;     // with propagated shardings
    CallRestriction stated;  // without these
    std::string sources;     // of `stated`
  };
  std::map<NodeId, OfNode> of_node_;
  std::map<NodeId, int64_t> stages_;
};

}  // namespace isomer

#endif  // ISOMER_OPTIMIZER_MAPPING_RESTRICTIONS_H_
