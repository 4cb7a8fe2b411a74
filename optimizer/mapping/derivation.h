// From choices to a plan: every choice becomes applications of proved rules.
//
// A call that is split in some dims is expanded dim by dim, outermost axis first:
//   f(x, y)  ->  combine/reduce ..(f(partition/replicate .. x, partition/replicate .. y))
// and the chains of parallel operators between two calls are shortened (chain.h). A call that
// several devices compute is split as if one of them did; then its users' copies of the result,
// which are equal and become one, move to its operands, users first:
//   replicate(f(x))  ->  f(replicate(x))
// The steps are the plan's derivation, without those that undo one another (detours.h); their
// result is the plan's graph.
#ifndef ISOMER_OPTIMIZER_MAPPING_DERIVATION_H_
#define ISOMER_OPTIMIZER_MAPPING_DERIVATION_H_

#include <map>
#include <vector>

#include "absl/status/statusor.h"
#include "optimizer/mapping/cost_tables.h"
#include "pcg/ir/plan.h"

namespace isomer {

// A model's graph after algebraic steps, with a choice for its calls. Ids are those of the growing
// graph. Calls without a choice run on device 0.
struct MappedModel {
  std::vector<DerivationStep> steps;
  Graph graph;
  std::map<NodeId, ShardingChoice> choices;
  // Layout calls on weights run on every device that needs the result, from its own replica of the
  // weight, whatever their choice (arranged_weights.h).
  bool copies_arranged = false;
};

// Numbering of a plan's nodes, which orders a device's tasks where exchanges do not
// (pcg/schedule/order/execution_order.h): by Canonical(), which follows a branch to its end before
// the next; or calls as in the mapped graph, each after the resharding of its operands, as in task
// graphs (task_graph.h).
enum class CallOrder { kCanonical, kModel };

// The plan without its predictions. Errors: a rule that was tried before does not apply.
absl::StatusOr<Plan> DerivePlan(const Model& model, const MappedModel& mapped, bool training,
                                CostTables* tables, CallOrder order = CallOrder::kCanonical);

}  // namespace isomer

#endif  // ISOMER_OPTIMIZER_MAPPING_DERIVATION_H_
