#include "optimizer/proposal/sequential_search.h"

#include <utility>

#include "optimizer/mapping/restrictions.h"
#include "pcg/support/status_macros.h"

namespace isomer {
namespace {

Machine FirstDeviceOf(const Machine& machine) {
  Machine one = machine;
  one.kinds = {machine.kind(0)};
  one.unit_kinds.clear();
  one.topology = {};
  for (Machine::Level& level : one.levels) {
    level.count = 1;
    level.of_kind.clear();  // there is nobody to send to
  }
  return one;
}

}  // namespace

absl::StatusOr<SearchResult> AlgebraOfOneDevice(const Graph& graph, const SearchOptions& options,
                                                CostTables* tables) {
  const CostModel one_device(FirstDeviceOf(tables->cost().machine()), tables->cost().profile());
  CostOptions cost_options = tables->options();
  cost_options.us_per_byte = 0;
  cost_options.num_devices = 0;  // all of the one
  CostTables one_tables(tables->rules(), one_device, cost_options);
  SearchOptions algebra_options = options;
  Restrictions any_choice;
  if (options.restrictions != nullptr) {
    any_choice = options.restrictions->AnyChoice();
    algebra_options.restrictions = &any_choice;
  }
  return HierarchicalSearch(graph, algebra_options, &one_tables);
}

absl::StatusOr<SearchResult> MapAlgebra(const SearchResult& algebra, const SearchOptions& options,
                                        CostTables* tables) {
  SearchOptions mapping_options = options;
  mapping_options.budget = 0;            // of each piece, the mapping of what is there
  mapping_options.cache_folder.clear();  // and of nothing that other searches made of it
  const Deadline deadline = Deadline::In(options.time_limit_s, options.watch);
  ISOMER_ASSIGN_OR_RETURN(SearchResult result,
                          HierarchicalSearch(algebra.mapped.graph, mapping_options, tables));
  result.mapped.steps.insert(result.mapped.steps.begin(), algebra.mapped.steps.begin(),
                             algebra.mapped.steps.end());
  result.stop = algebra.stop;
  if (const auto reached = deadline.Reached()) result.stop = *reached;
  return result;
}

}  // namespace isomer
