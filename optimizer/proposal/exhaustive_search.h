// A* over all assignments (exhaustive.h) as a strategy: from the best that mapping finds, to the
// proof that nothing is faster, or to the end of the budget.
#ifndef ISOMER_OPTIMIZER_PROPOSAL_EXHAUSTIVE_SEARCH_H_
#define ISOMER_OPTIMIZER_PROPOSAL_EXHAUSTIVE_SEARCH_H_

#include "absl/status/statusor.h"
#include "optimizer/bound/exhaustive.h"
#include "optimizer/mapping/cost_tables.h"
#include "optimizer/substitution/search.h"
#include "pcg/ir/plan.h"
#include "pcg/support/stopping.h"

namespace isomer {

// The best assignment that mapping and a short walk from it find: no algebra, every number of
// devices that divides the machine, several weights of synchronisation.
absl::StatusOr<MappedModel> BestMapping(const Model& model, const Deadline& deadline,
                                        CostTables* tables);

// `proof` receives what was proved, in one line. Of the options, the budget counts, in prefixes. At
// the deadline it ends with the best so far, as at the end of the budget.
// Errors: what task graphs do not know (task_graph.h), restrictions.
absl::StatusOr<SearchResult> ExhaustiveSearch(const Model& model, const SearchOptions& options,
                                              const Deadline& deadline, CostTables* tables,
                                              std::string* proof);

}  // namespace isomer

#endif  // ISOMER_OPTIMIZER_PROPOSAL_EXHAUSTIVE_SEARCH_H_
