#include "optimizer/substitution/series_parallel.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace isomer {
namespace {

using Order = std::vector<std::vector<bool>>;  // [a][b]: a comes before b

Order ClosureOf(int num_nodes, const std::vector<std::pair<int, int>>& edges) {
  Order before(num_nodes, std::vector<bool>(num_nodes, false));
  for (const auto& [from, to] : edges) before[from][to] = true;
  for (int k = 0; k < num_nodes; ++k) {
    for (int i = 0; i < num_nodes; ++i) {
      if (!before[i][k]) continue;
      for (int j = 0; j < num_nodes; ++j) {
        if (before[k][j]) before[i][j] = true;
      }
    }
  }
  return before;
}

// Components of `nodes` under the relation "ordered" (or "not ordered"), each in order of nodes.
std::vector<std::vector<int>> Components(const Order& before, const std::vector<int>& nodes,
                                         bool ordered) {
  std::vector<std::vector<int>> components;
  std::vector<bool> seen(before.size(), false);
  for (int root : nodes) {
    if (seen[root]) continue;
    std::vector<int> component = {root};
    seen[root] = true;
    for (size_t at = 0; at < component.size(); ++at) {
      const int a = component[at];
      for (int b : nodes) {
        if (seen[b] || (before[a][b] || before[b][a]) != ordered) continue;
        seen[b] = true;
        component.push_back(b);
      }
    }
    std::sort(component.begin(), component.end());
    components.push_back(std::move(component));
  }
  return components;
}

std::optional<SeriesParallel> Decompose(const Order& before, const std::vector<int>& nodes) {
  SeriesParallel whole;
  if (nodes.size() == 1) {
    whole.node = nodes[0];
    return whole;
  }
  whole.kind = SeriesParallel::Kind::kParallel;
  std::vector<std::vector<int>> parts = Components(before, nodes, /*ordered=*/true);
  if (parts.size() == 1) {
    whole.kind = SeriesParallel::Kind::kSeries;
    parts = Components(before, nodes, /*ordered=*/false);
    if (parts.size() == 1) return std::nullopt;
    std::sort(parts.begin(), parts.end(),
              [&](const auto& a, const auto& b) { return before[a[0]][b[0]]; });
  }
  for (const std::vector<int>& part : parts) {
    std::optional<SeriesParallel> inner = Decompose(before, part);
    if (!inner) return std::nullopt;
    whole.parts.push_back(*std::move(inner));
  }
  return whole;
}

}  // namespace

std::string SeriesParallel::ToString() const {
  if (kind == Kind::kNode) return absl::StrCat(node);
  return absl::StrCat(kind == Kind::kSeries ? "S(" : "P(",
                      absl::StrJoin(parts, ", ",
                                    [](std::string* out, const SeriesParallel& part) {
                                      out->append(part.ToString());
                                    }),
                      ")");
}

std::optional<SeriesParallel> DecomposeSeriesParallel(
    int num_nodes, const std::vector<std::pair<int, int>>& edges) {
  std::vector<int> nodes;
  for (int i = 0; i < num_nodes; ++i) nodes.push_back(i);
  return Decompose(ClosureOf(num_nodes, edges), nodes);
}

}  // namespace isomer
