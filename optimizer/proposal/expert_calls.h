// Calls of a mixture's experts, found by structure.
#ifndef ISOMER_OPTIMIZER_PROPOSAL_EXPERT_CALLS_H_
#define ISOMER_OPTIMIZER_PROPOSAL_EXPERT_CALLS_H_

#include <cstdint>
#include <vector>

#include "optimizer/mapping/role_mapping.h"
#include "pcg/ir/graph.h"

namespace isomer {

// A product of an expert has a weight of rank 3 or more, whose first dim is the experts. `graph`
// must outlive this.
class ExpertCalls {
 public:
  explicit ExpertCalls(const Graph& graph);

  // Of the first product; 0: there is none.
  int64_t num_experts() const;
  bool IsProduct(NodeId id) const;
  // The iteration dim that is the experts, of a product, of the sum of one and a bias of each
  // expert, and of calls that lead from one to the next (without another product, layout call or
  // look-up in between); -1: of other calls.
  int DimOf(const CallToMap& call) const;
  // The iteration dim that is the groups of experts (RoutedSizes::groups), of the calls on the rows
  // that a group has; -1: of other calls. How many groups there are; 1: experts are in none.
  int GroupDimOf(const CallToMap& call) const;
  int64_t num_groups() const { return num_groups_; }

 private:
  // A routing within groups, and a look-up of rows by what one says.
  bool RoutesWithinGroups(NodeId id) const;
  bool GathersWithinGroups(NodeId id) const;
  // The sum of a product and a weight of rank 3 or more.
  bool IsBiased(NodeId id) const;

  const Graph& graph_;
  std::vector<bool> leads_to_product_;
  std::vector<bool> leads_to_group_sum_;  // a layout call whose result a sum within groups reads
  int64_t num_groups_ = 1;
};

}  // namespace isomer

#endif  // ISOMER_OPTIMIZER_PROPOSAL_EXPERT_CALLS_H_
