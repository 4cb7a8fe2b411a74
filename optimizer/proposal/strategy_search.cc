#include "optimizer/proposal/strategy_search.h"

#include <algorithm>
#include <utility>

#include "optimizer/mapping/role_mapping.h"
#include "optimizer/proposal/exhaustive_search.h"
#include "optimizer/proposal/mcmc_search.h"
#include "optimizer/proposal/sequential_search.h"
#include "pcg/support/status_macros.h"

namespace isomer {
absl::StatusOr<MappedModel> StrategySearch::Search(Strategy strategy, const CostOptions& options) {
  SearchOptions search = options_;
  if (!restrictions_.empty()) search.restrictions = &restrictions_;
  // The time limit is that of all searches.
  if (search.time_limit_s > 0) search.time_limit_s = std::max(1e-9, deadline_.SecondsLeft());
  tables_.set_options(options);
  ISOMER_ASSIGN_OR_RETURN(SearchResult found, SearchBy(strategy, search));
  if (const auto violations = restrictions_.Violations(found.mapped); !violations.empty()) {
    return absl::InternalError(violations[0]);
  }
  Record(found);
  if (keep_rewritten_ && !found.mapped.steps.empty()) {
    rewritten_.push_back({found.mapped.steps, found.mapped.graph});
  }
  ISOMER_RETURN_IF_ERROR(MapArrangedWeights(&tables_, &found.mapped));
  return std::move(found.mapped);
}

absl::StatusOr<MappedModel> StrategySearch::MapInOnePiece(const Rewritten* rewritten,
                                                          bool concurrent_branches,
                                                          const CostOptions& options) {
  SearchOptions search = options_;
  search.split = false;
  search.concurrent_branches = concurrent_branches;
  search.cache_folder.clear();
  if (!restrictions_.empty() && rewritten == nullptr) search.restrictions = &restrictions_;
  tables_.set_options(options);
  HierarchicalSearcher searcher(rewritten == nullptr ? model_.graph : rewritten->graph, search,
                                tables_.rules());
  ISOMER_ASSIGN_OR_RETURN(SearchResult found, searcher.Search(&tables_, deadline_, /*part=*/0));
  if (rewritten != nullptr) found.mapped.steps = rewritten->steps;
  ISOMER_RETURN_IF_ERROR(MapArrangedWeights(&tables_, &found.mapped));
  return std::move(found.mapped);
}

void StrategySearch::Record(const SearchResult& found) {
  record_.candidates += found.candidates;
  record_.pieces = found.pieces;
  record_.distinct_pieces = found.distinct_pieces;
  record_.remembered_pieces = found.remembered_pieces;
  if (!found.cache_note.empty()) record_.cache_note = found.cache_note;
  record_.exact_mappings &= found.exact_mappings;
  Stopped(found.stop);
}

absl::StatusOr<SearchResult> StrategySearch::SearchBy(Strategy strategy,
                                                      const SearchOptions& options) {
  switch (strategy) {
    case Strategy::kHierarchical:
      return SearchJointly(options);
    case Strategy::kMcmc:
      return McmcSearch(model_, options, &tables_);
    case Strategy::kSequential:
      return SearchAlgebraFirst(options);
    case Strategy::kExhaustive:
      return ExhaustiveSearch(model_, options, deadline_, &tables_, &record_.proof);
  }
  return absl::InternalError("no such strategy");
}

// All of the budget for the first costs.
absl::StatusOr<SearchResult> StrategySearch::SearchJointly(const SearchOptions& options) {
  const bool first = !searcher_.has_value();
  if (first) searcher_.emplace(model_.graph, options, tables_.rules());
  return searcher_->Search(&tables_, deadline_, first ? 1 : policy_.later_search_share);
}

absl::StatusOr<SearchResult> StrategySearch::SearchAlgebraFirst(const SearchOptions& options) {
  int64_t candidates = 0;
  if (!one_device_algebra_.has_value()) {
    ISOMER_ASSIGN_OR_RETURN(one_device_algebra_,
                            AlgebraOfOneDevice(model_.graph, options, &tables_));
    candidates = one_device_algebra_->candidates;
  }
  ISOMER_ASSIGN_OR_RETURN(SearchResult found, MapAlgebra(*one_device_algebra_, options, &tables_));
  found.candidates += candidates;
  return found;
}

absl::StatusOr<std::optional<double>> StrategySearch::UsOnOneDevice(CostOptions options) {
  if (!searcher_.has_value()) return std::nullopt;
  options.num_devices = 1;
  tables_.set_options(options);
  ISOMER_ASSIGN_OR_RETURN(const SearchResult found,
                          searcher_->Search(&tables_, deadline_, /*part=*/0));
  return found.us;
}

}  // namespace isomer
