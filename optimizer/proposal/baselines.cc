#include "optimizer/proposal/baselines.h"

#include <numeric>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "optimizer/proposal/grid_mapping.h"
#include "optimizer/proposal/published_plans.h"
#include "pcg/support/status_macros.h"

namespace isomer {

bool IsBaseline(absl::string_view name) { return absl::c_linear_search(kBaselines, name); }

absl::StatusOr<MappedModel> MapBaseline(const std::string& name, const Graph& graph,
                                        CostTables* tables) {
  if (name == kSingleDevice) {
    MappedModel mapped;
    mapped.graph = graph;
    return mapped;
  }
  if (name == kDataParallel || name == kZero3) return MapGrid(graph, {}, tables);
  const int64_t node = std::gcd(tables->cost().machine().devices_per_node(), tables->num_devices());
  if (name == kMegatron && node > 1) return MapGrid(graph, {.tensor = node}, tables);
  if (name == kMegatron) return absl::NotFoundError("a node has just one device");
  if (name == kPublished) return MapPublished(graph, tables);
  return absl::InvalidArgumentError(absl::StrCat("--plan=", name, ": there are ", kDataParallel,
                                                 ", ", kZero3, ", ", kMegatron, " and ",
                                                 kPublished));
}

}  // namespace isomer
