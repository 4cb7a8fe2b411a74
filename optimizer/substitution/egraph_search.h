// Level 2 by equality saturation, an alternative to best-first search (substitution.h): a piece
// becomes an e-graph, rules are applied to all of it at once, selections of calls are extracted by
// cost and replayed as steps: candidates for the mapping.
#ifndef ISOMER_OPTIMIZER_SUBSTITUTION_EGRAPH_SEARCH_H_
#define ISOMER_OPTIMIZER_SUBSTITUTION_EGRAPH_SEARCH_H_

#include <cstdint>
#include <vector>

#include "optimizer/mapping/cost_tables.h"
#include "optimizer/substitution/splitting.h"
#include "optimizer/substitution/substitution.h"
#include "pcg/support/stopping.h"

namespace isomer {

struct EGraphSearchOptions {
  int64_t budget = 100;  // scales the size of the e-graph and the effort of extraction
  uint64_t seed = 1;
  Deadline deadline = {};
};

// Best first, by the cost of calls alone; empty if no rewrite by `algebra` improves the piece.
std::vector<Steps> CandidatesByEGraph(const Piece& piece, const EGraphSearchOptions& options,
                                      const std::vector<const Rule*>& algebra, CostTables* tables);

}  // namespace isomer

#endif  // ISOMER_OPTIMIZER_SUBSTITUTION_EGRAPH_SEARCH_H_
