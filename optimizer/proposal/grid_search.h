// The best configurations as plans.
//
// There are hundreds of configurations and few can be simulated: estimates order them
// (parallel_config.h). The first of them are mapped by hand; for those with micro-batches the
// search also maps the devices of one stage, with a price on memory until the estimate fits. Both
// are derived and simulated.
#ifndef ISOMER_OPTIMIZER_PROPOSAL_GRID_SEARCH_H_
#define ISOMER_OPTIMIZER_PROPOSAL_GRID_SEARCH_H_

#include <functional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "optimizer/mapping/cost_tables.h"
#include "optimizer/mapping/derivation.h"
#include "optimizer/proposal/contest.h"
#include "optimizer/proposal/parallel_config.h"
#include "optimizer/proposal/proposer.h"
#include "pcg/support/stopping.h"

namespace isomer {

// Configurations of tensor, pipeline and data parallelism, for where the best plan so far leaves
// devices waiting, or does not fit; then of half of the devices, as long as those are faster.
extern const Proposer kGrids;

// What a user asks of configurations on so many devices.
GridOptions GridOptionsOf(const SearchContext& context, int64_t devices);

// EnumerateGrids on so many devices, once in all runs that are parts of one.
absl::StatusOr<std::vector<ConfigEstimate>> GridsOf(SearchContext* context, int64_t devices);

struct GridSearchOptions {
  GridOptions grids;
  std::vector<ConfigEstimate> estimates;  // of these, as EnumerateGrids sorts them
  std::string plan;  // only grids that are this baseline's (baselines.h), or ""
  // Maps a model onto the devices of a stage, or null: by hand only. `restricted`: calls are, so
  // that mappings by hand are none.
  std::function<absl::StatusOr<MappedModel>(const CostOptions&)> search;
  bool restricted = false;
  // Lets a mapping take part, by hand (as a baseline of that name) or found (kFound).
  std::function<absl::StatusOr<Prediction>(const MappedModel&, const ParallelConfig&,
                                           const std::string& origin)>
      consider;
  // Says that a mapping will likely take part (Contest::Prefetch).
  std::function<void(const MappedModel&, const ParallelConfig&)> prefetch;
};

// Sets the options of `tables`.
absl::Status SearchGrids(GridGraph* graphs, const GridSearchOptions& options,
                         const Deadline& deadline, const Contest& contest, CostTables* tables);

}  // namespace isomer

#endif  // ISOMER_OPTIMIZER_PROPOSAL_GRID_SEARCH_H_
