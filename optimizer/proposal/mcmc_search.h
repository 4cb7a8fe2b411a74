// FlexFlow's search (MLSys'19) as a strategy: no algebra, a random walk over the choices of single
// operators from data parallelism, judged by simulated steps.
#ifndef ISOMER_OPTIMIZER_PROPOSAL_MCMC_SEARCH_H_
#define ISOMER_OPTIMIZER_PROPOSAL_MCMC_SEARCH_H_

#include "absl/status/statusor.h"
#include "optimizer/mapping/cost_tables.h"
#include "optimizer/substitution/search.h"
#include "pcg/ir/plan.h"

namespace isomer {

// Of the options, `restrictions`, `time_limit_s`, `seed` and `budget`, of proposals, count.
// Errors: what task graphs do not know (task_graph.h).
absl::StatusOr<SearchResult> McmcSearch(const Model& model, const SearchOptions& options,
                                        CostTables* tables);

}  // namespace isomer

#endif  // ISOMER_OPTIMIZER_PROPOSAL_MCMC_SEARCH_H_
