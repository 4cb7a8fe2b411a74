// The hierarchical search: pieces (level 1), substitutions of each (level 2), mappings of each
// candidate (level 3), and a dynamic program over the chain of pieces that picks the placement of
// every crossing tensor.
#ifndef ISOMER_OPTIMIZER_SUBSTITUTION_SEARCH_H_
#define ISOMER_OPTIMIZER_SUBSTITUTION_SEARCH_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "optimizer/mapping/cost_tables.h"
#include "optimizer/mapping/derivation.h"
#include "optimizer/substitution/substitution.h"
#include "pcg/support/search_watch.h"
#include "pcg/support/stopping.h"

namespace isomer {

class Restrictions;

// The search for substitutions of a piece; kBoth: best-first, started from candidates of equality
// saturation, too.
enum class Engine { kBestFirst, kEGraph, kBoth };

struct SearchOptions {
  Engine engine = Engine::kBestFirst;
  double alpha = 1.05;
  int64_t budget = 300;              // candidates, over all distinct pieces
  int min_piece_nodes = 5;           // enough for substitutions to match
  bool split = true;                 // false: the model is one piece
  bool cache = true;                 // equal pieces are solved once
  bool dynamic_program = true;       // false: mappings are enumerated (mapping_enumeration.h)
  bool concurrent_branches = false;  // of branches that only meet (mapping_branches.h)
  std::string cache_folder = {};     // results of earlier runs (search_cache.h)
  uint64_t seed = 1;                 // for random moves, and the order of steps
  const Restrictions* restrictions = nullptr;  // a user's, or null; must outlive
  double time_limit_s = 0;                     // from the start of the search; 0: none
  SearchWatch* watch = nullptr;                // of who waits for it, or null; must outlive
};

struct SearchResult {
  MappedModel mapped;
  double us = 0;  // by the tables: no overlap of compute and communication
  int64_t candidates = 0;
  int pieces = 0, distinct_pieces = 0;
  int remembered_pieces = 0;  // distinct pieces found in the cache
  std::string cache_note;     // why the cache was ignored; "": it was used
  StopReason stop = StopReason::kExhausted;
  bool exact_mappings = true;
};

// Searches one model under several costs: weights of synchronisation, prices of memory, parts of
// the machine. The useful substitutions in a piece are mostly the same under all of them, so later
// runs start from the best candidates of earlier ones and need few more.
class HierarchicalSearcher {
 public:
  // `graph` and `rules` outlive this.
  HierarchicalSearcher(const Graph& graph, const SearchOptions& options, const RuleIndex& rules);
  ~HierarchicalSearcher();

  // `part`: fraction of the budget; 0: no new candidates. Errors: no mapping is possible under the
  // tables' rules.
  absl::StatusOr<SearchResult> Search(CostTables* tables, const Deadline& deadline,
                                      double part = 1);

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

// A single search.
absl::StatusOr<SearchResult> HierarchicalSearch(const Graph& graph, const SearchOptions& options,
                                                CostTables* tables);

}  // namespace isomer

#endif  // ISOMER_OPTIMIZER_SUBSTITUTION_SEARCH_H_
