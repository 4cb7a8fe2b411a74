// The hierarchical search: pieces (level 1), substitutions of each (level 2), mappings of each
// candidate (level 3), and a dynamic program over the chain of pieces that picks how every crossing
// tensor is held.
#ifndef ISOMER_OPTIMIZER_SEARCH_H_
#define ISOMER_OPTIMIZER_SEARCH_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "optimizer/cost_tables.h"
#include "optimizer/derivation.h"
#include "optimizer/substitution.h"

namespace isomer {

struct SearchOptions {
  double alpha = 1.05;
  int64_t budget = 300;     // candidates, over all distinct pieces
  int min_piece_nodes = 5;  // so that a piece has algebra in it
};

enum class StopReason {
  kExhausted,  // no candidate within alpha is left
  kBudget,     // as many candidates as asked for were mapped
};
const char* StopReasonName(StopReason reason);

struct SearchResult {
  MappedModel mapped;
  double us = 0;  // by the tables: no overlap of compute and communication
  int64_t candidates = 0;
  int pieces = 0, distinct_pieces = 0;
  int series_parallel_pieces = 0;  // of the distinct ones, as the model has them
  StopReason stop = StopReason::kExhausted;
  bool exact_mappings = true;
};

// Errors: no mapping is possible under the tables' rules.
absl::StatusOr<SearchResult> HierarchicalSearch(const Graph& graph, const SearchOptions& options,
                                                CostTables* tables);

}  // namespace isomer

#endif  // ISOMER_OPTIMIZER_SEARCH_H_
