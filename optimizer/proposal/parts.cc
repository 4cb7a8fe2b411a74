#include "optimizer/proposal/parts.h"

#include "optimizer/proposal/baselines.h"
#include "optimizer/proposal/grid_mapping.h"
#include "optimizer/proposal/search_context.h"
#include "pcg/support/status_macros.h"

namespace isomer {
namespace {

bool IsPart(const SearchContext&, const Submachine& on) { return on.is_searched && !on.is_whole; }

absl::Status MapByHand(SearchContext* context, Submachine* on) {
  const Graph& graph = context->model.graph;
  for (int64_t tensor_degree : {int64_t{1}, on->devices}) {
    context->tables.set_options(context->OptionsOn(*on));
    const auto mapped = MapGrid(graph, {.tensor = tensor_degree}, &context->tables);
    if (mapped.ok()) ISOMER_RETURN_IF_ERROR(context->Consider(*mapped, on).status());
    if (on->devices == 1 || on->devices > context->cost.machine().devices_per_node()) break;
  }
  const auto published = MapBaseline(kPublished, graph, &context->tables);
  if (published.ok()) ISOMER_RETURN_IF_ERROR(context->Consider(*published, on).status());
  return absl::OkStatus();
}

}  // namespace

constinit const Proposer kParts = {"parts", "mappings that leave devices idle",
                                   Proposer::When::kSearch, IsPart, MapByHand};

}  // namespace isomer
