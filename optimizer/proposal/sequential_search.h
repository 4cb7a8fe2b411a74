// Algebra first, then parallelism: what one does who has an optimizer of graphs (TASO) and one of
// parallelism (FlexFlow), and what joint optimisation is compared with (Unity, OSDI'22, section 8).
#ifndef ISOMER_OPTIMIZER_PROPOSAL_SEQUENTIAL_SEARCH_H_
#define ISOMER_OPTIMIZER_PROPOSAL_SEQUENTIAL_SEARCH_H_

#include "absl/status/statusor.h"
#include "optimizer/mapping/cost_tables.h"
#include "optimizer/substitution/search.h"

namespace isomer {

// Substitutions under the costs of the machine's first device alone.
absl::StatusOr<SearchResult> AlgebraOfOneDevice(const Graph& graph, const SearchOptions& options,
                                                CostTables* tables);

// The mapping of what they made; the steps are of both.
absl::StatusOr<SearchResult> MapAlgebra(const SearchResult& algebra, const SearchOptions& options,
                                        CostTables* tables);

}  // namespace isomer

#endif  // ISOMER_OPTIMIZER_PROPOSAL_SEQUENTIAL_SEARCH_H_
