// One model, searched under several costs by whatever strategy, with an account of it all.
#ifndef ISOMER_OPTIMIZER_PROPOSAL_STRATEGY_SEARCH_H_
#define ISOMER_OPTIMIZER_PROPOSAL_STRATEGY_SEARCH_H_

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "optimizer/mapping/cost_tables.h"
#include "optimizer/mapping/derivation.h"
#include "optimizer/mapping/restrictions.h"
#include "optimizer/proposal/search_policy.h"
#include "optimizer/substitution/search.h"
#include "pcg/ir/plan.h"
#include "pcg/support/stopping.h"

namespace isomer {

// How plans are searched for; baselines are looked at besides.
enum class Strategy {
  kHierarchical,  // search.h
  kMcmc,          // mcmc_search.h
  kSequential,    // sequential_search.h
  kExhaustive,    // exhaustive_search.h
};

// Whether steps decide rather than tables: there is nothing to weigh, and no part of the machine to
// try, since what simulates takes all of it into account.
inline bool Simulates(Strategy strategy) {
  return strategy == Strategy::kMcmc || strategy == Strategy::kExhaustive;
}

// Of all searches.
struct SearchRecord {
  int64_t candidates = 0;
  int pieces = 0, distinct_pieces = 0;
  int remembered_pieces = 0;  // of the distinct ones, those that an earlier run had searched
  std::string cache_note;     // why what earlier runs kept was ignored; "": it was not
  StopReason stop = StopReason::kExhausted;
  bool exact_mappings = true;
  std::string proof;  // of an exhaustive search: what it proved, in one line
};

// A graph that algebra made of the model's.
struct Rewritten {
  std::vector<DerivationStep> steps;
  Graph graph;
};

class StrategySearch {
 public:
  // All of these outlive this. `restrictions` may be resolved later, before a search.
  StrategySearch(const Model& model, const SearchOptions& options, const SearchPolicy& policy,
                 const Restrictions& restrictions, const Deadline& deadline, CostTables* tables)
      : model_(model),
        options_(options),
        policy_(policy),
        restrictions_(restrictions),
        deadline_(deadline),
        tables_(*tables) {}

  // Under costs with these options, which become those of the tables. Every call has a choice.
  absl::StatusOr<MappedModel> Search(Strategy strategy, const CostOptions& options);

  // The mapping alone, without a search, of a graph that algebra made of the model's or, null, of
  // that itself; as one piece, in which branches between any two cuts may run beside each other,
  // and, with `concurrent_branches`, those that only meet.
  absl::StatusOr<MappedModel> MapInOnePiece(const Rewritten* rewritten, bool concurrent_branches,
                                            const CostOptions& options);

  // By the tables, what the model takes on one device with the algebra that was found so far; none
  // was searched for: nothing.
  absl::StatusOr<std::optional<double>> UsOnOneDevice(CostOptions options);

  // That there was no time for another search.
  void Stopped(StopReason reason) { record_.stop = std::max(record_.stop, reason); }
  const SearchRecord& record() const { return record_; }

  // The graphs that searches return are kept from now on.
  void KeepRewritten() { keep_rewritten_ = true; }
  const std::vector<Rewritten>& rewritten() const { return rewritten_; }

 private:
  absl::StatusOr<SearchResult> SearchBy(Strategy strategy, const SearchOptions& options);
  absl::StatusOr<SearchResult> SearchJointly(const SearchOptions& options);
  absl::StatusOr<SearchResult> SearchAlgebraFirst(const SearchOptions& options);
  void Record(const SearchResult& found);

  const Model& model_;
  const SearchOptions& options_;
  const SearchPolicy& policy_;
  const Restrictions& restrictions_;
  const Deadline& deadline_;
  CostTables& tables_;
  std::optional<HierarchicalSearcher> searcher_;
  std::optional<SearchResult> one_device_algebra_;
  SearchRecord record_;
  bool keep_rewritten_ = false;
  std::vector<Rewritten> rewritten_;
};

}  // namespace isomer

#endif  // ISOMER_OPTIMIZER_PROPOSAL_STRATEGY_SEARCH_H_
