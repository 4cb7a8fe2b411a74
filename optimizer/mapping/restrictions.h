// A user's constraints, resolved on a model: what they leave of the choices of every call.
//
// A split tensor is split so by the operator that makes it; one that is stored or fed, by those who
// read it. From there the split spreads, as in GShard (Lepikhin et al. 2020, section 3.2), through
// operators that map element to element, and to the operators at the border of those; but what
// spreads gives way: where a call cannot be split so, or another constraint is nearer, tensors are
// resharded. So a few annotations decide how a network is held, and the search the rest.
//
// Calls with a restriction are not rewritten by algebra: after a rewrite there would be nobody to
// keep it.
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
  // Errors, one line that begins with file and line: a name that nothing has (the nearest is
  // named), a dim that there is not, or that no rule splits so; devices that there are not; and
  // contradictions, with both sources.
  static absl::StatusOr<Restrictions> Resolve(const Constraints& constraints, const Graph& graph,
                                              CostTables* tables);

  // For a search whose choices are not those of the plan: the same nodes stay, however spread.
  Restrictions AnyChoice() const;

  bool empty() const { return of_node_.empty() && stages_.empty(); }
  // Whether there is more than stages.
  bool restrict_calls() const;
  // Of a node of the model's graph; null: none.
  const CallRestriction* Of(NodeId node) const;
  // The stages of the pipeline that nodes are bound to; a plan without pipeline is of one stage.
  const std::map<NodeId, int64_t>& stages() const { return stages_; }
  int64_t least_stages() const;

  // What `mapped`, of a rewrite of the model's graph, does not keep; one line for each, that begins
  // with the constraint's file and line. Of what spread, nothing.
  std::vector<std::string> Violations(const MappedModel& mapped) const;

 private:
  friend class RestrictionResolver;
  struct OfNode {
    CallRestriction all;     // what spread is in it
    CallRestriction stated;  // without that
    std::string sources;     // of `stated`
  };
  std::map<NodeId, OfNode> of_node_;
  std::map<NodeId, int64_t> stages_;
};

}  // namespace isomer

#endif  // ISOMER_OPTIMIZER_MAPPING_RESTRICTIONS_H_
