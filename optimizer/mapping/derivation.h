// From choices to a plan: every choice becomes applications of proved rules.
//
// A call that is split in some dims is expanded dim by dim, outermost axis first:
//   f(x, y)  ->  combine/reduce ..(f(partition/replicate .. x, partition/replicate .. y))
// and the chains of parallel operators that meet between two calls are shortened (chain.h). The
// steps are the plan's derivation; what they lead to is the plan's graph.
#ifndef ISOMER_OPTIMIZER_MAPPING_DERIVATION_H_
#define ISOMER_OPTIMIZER_MAPPING_DERIVATION_H_

#include <map>
#include <vector>

#include "absl/status/statusor.h"
#include "optimizer/mapping/cost_tables.h"
#include "pcg/ir/plan.h"

namespace isomer {

// A model's graph after algebraic steps, and how to spread its calls. Ids are those of the growing
// graph. Calls without a choice run on device 0.
struct MappedModel {
  std::vector<DerivationStep> steps;
  Graph graph;
  std::map<NodeId, ShardingChoice> choices;
  // What arranges a weight is done by every device that needs it, of its own copy, whatever its
  // choice (arranged_weights.h).
  bool copies_arranged = false;
};

// How the nodes of a plan's graph are numbered, which decides in what order devices work where
// exchanges do not (pcg/schedule/order/execution_order.h): as Canonical() does, which follows a
// branch to its end before the next; or calls as the mapped graph has them, each behind what moves
// its operands, as task graphs have them (task_graph.h).
enum class CallOrder { kCanonical, kModel };

// The plan without its predictions. Errors: a rule that was tried before does not apply.
absl::StatusOr<Plan> DerivePlan(const Model& model, const MappedModel& mapped, bool training,
                                CostTables* tables, CallOrder order = CallOrder::kCanonical);

}  // namespace isomer

#endif  // ISOMER_OPTIMIZER_MAPPING_DERIVATION_H_
