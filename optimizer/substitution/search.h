// The hierarchical search: pieces (level 1), substitutions of each (level 2), mappings of each
// candidate (level 3), and a dynamic program over the chain of pieces that picks how every crossing
// tensor is held.
#ifndef ISOMER_OPTIMIZER_SUBSTITUTION_SEARCH_H_
#define ISOMER_OPTIMIZER_SUBSTITUTION_SEARCH_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "optimizer/mapping/cost_tables.h"
#include "optimizer/mapping/derivation.h"
#include "optimizer/substitution/substitution.h"
#include "pcg/support/stopping.h"

namespace isomer {

class Restrictions;

// What searches the substitutions of a piece; both: best-first from what equality saturation finds,
// too.
enum class Engine { kBestFirst, kEGraph, kBoth };

struct SearchOptions {
  Engine engine = Engine::kBestFirst;
  double alpha = 1.05;
  int64_t budget = 300;              // candidates, over all distinct pieces
  int min_piece_nodes = 5;           // so that a piece has algebra in it
  bool split = true;                 // false: the model is one piece
  bool cache = true;                 // equal pieces are solved once
  bool dynamic_program = true;       // false: mappings are enumerated (mapping_enumeration.h)
  bool concurrent_branches = false;  // that only meet (mapping_branches.h)
  std::string cache_folder = {};     // of what earlier runs found (search_cache.h); "": none
  uint64_t seed = 1;                 // of what is random, and of steps that look equally good
  const Restrictions* restrictions = nullptr;  // a user's, if any; must outlive the search
  double time_limit_s = 0;                     // from the start of the search; 0: none
};

struct SearchResult {
  MappedModel mapped;
  double us = 0;  // by the tables: no overlap of compute and communication
  int64_t candidates = 0;
  int pieces = 0, distinct_pieces = 0;
  int remembered_pieces = 0;  // of the distinct ones, those that the cache knew
  std::string cache_note;     // why the cache was ignored; "": it was not
  StopReason stop = StopReason::kExhausted;
  bool exact_mappings = true;
};

// One model, searched under several costs: other weights of synchronisation, prices of memory,
// parts of the machine. What algebra there is in a piece is mostly the same under all of them:
// later runs begin with the candidates that earlier ones found best, and need few more.
class HierarchicalSearcher {
 public:
  // `graph` and `rules` outlive this.
  HierarchicalSearcher(const Graph& graph, const SearchOptions& options, const RuleIndex& rules);
  ~HierarchicalSearcher();

  // `part`: of the budget; 0: no new candidates.
  // Errors: no mapping is possible under the tables' rules.
  absl::StatusOr<SearchResult> Search(CostTables* tables, const Deadline& deadline,
                                      double part = 1);

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

// A search by itself.
absl::StatusOr<SearchResult> HierarchicalSearch(const Graph& graph, const SearchOptions& options,
                                                CostTables* tables);

}  // namespace isomer

#endif  // ISOMER_OPTIMIZER_SUBSTITUTION_SEARCH_H_
