// The tables on searching: figures of the papers, and of this program in one run beside them.
#ifndef ISOMER_BENCH_SEARCH_TABLES_H_
#define ISOMER_BENCH_SEARCH_TABLES_H_

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "bench/search/optimizer_run.h"
#include "bench/search/table.h"

namespace isomer {

// What a table is made of. Rows of models whose names do not contain `filter` are left out.
struct TableContext {
  OptimizerRunner runner;
  std::optional<OptimizerRunner> before = {};  // of other programs, to compare with
  std::string filter;
  double limit_s;                        // of one run
  std::set<std::string> proposers = {};  // that `proposers` switches off; none: all
  bool Wants(const std::string& model) const { return model.find(filter) != std::string::npos; }
};

// Unity's table 2: ResNeXt-50 on Summit, with parts of the search switched off.
absl::StatusOr<Table> AblationTable(const TableContext& context);
// Unity's seven networks on 192 devices of Summit.
absl::StatusOr<Table> UnityModelsTable(const TableContext& context);
// Networks of 10^11 parameters on 1,024 and 16,384 H100.
absl::StatusOr<Table> LargeModelsTable(const TableContext& context);
// Unity's networks on 6 to 192 devices: what is gained over experts' plans, and over algebra first
// and parallelism second.
absl::StatusOr<Table> SpeedupTable(const TableContext& context);
// Plans under limits of memory.
absl::StatusOr<Table> MemoryTable(const TableContext& context);
// A model of 100,000 operators on 16,384 devices.
absl::StatusOr<Table> ScaleTable(const TableContext& context);

struct NamedTable {
  const char* name;
  const char* about;
  absl::StatusOr<Table> (*make)(const TableContext& context);
};
absl::Span<const NamedTable> AllTables();

}  // namespace isomer

#endif  // ISOMER_BENCH_SEARCH_TABLES_H_
