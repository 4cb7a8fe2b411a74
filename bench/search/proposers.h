// What proposers of plans are worth (isomer-optimize --list_proposers), and what a change of the
// optimizer makes of plans.
#ifndef ISOMER_BENCH_SEARCH_PROPOSERS_H_
#define ISOMER_BENCH_SEARCH_PROPOSERS_H_

#include "absl/status/statusor.h"
#include "bench/search/table.h"
#include "bench/search/tables.h"

namespace isomer {

// A row per proposer: by how much steps are longer without it, and what searches take, on the
// networks of bench/gap on 16 and 64 H100.
absl::StatusOr<Table> ProposersTable(const TableContext& context);
// A row per plan of the zoo whose step is not what the programs of `before` find. Errors: none were
// given.
absl::StatusOr<Table> ChangesTable(const TableContext& context);

}  // namespace isomer

#endif  // ISOMER_BENCH_SEARCH_PROPOSERS_H_
