// What Unity reports to have found by joint optimisation (OSDI'22, section 7 and figure 16), looked
// for in the plans of this search.
#ifndef ISOMER_BENCH_SEARCH_FINDINGS_H_
#define ISOMER_BENCH_SEARCH_FINDINGS_H_

#include "absl/status/statusor.h"
#include "bench/search/table.h"
#include "bench/search/tables.h"

namespace isomer {

// A row per finding: whether the plan shows it, and what it gains over the sequential search and
// over experts' plans.
absl::StatusOr<Table> FindingsTable(const TableContext& context);

}  // namespace isomer

#endif  // ISOMER_BENCH_SEARCH_FINDINGS_H_
