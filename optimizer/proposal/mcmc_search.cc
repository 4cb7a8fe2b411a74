#include "optimizer/proposal/mcmc_search.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "optimizer/mapping/restrictions.h"
#include "optimizer/proposal/baselines.h"
#include "optimizer/walk/mcmc.h"
#include "pcg/support/status_macros.h"

namespace isomer {
namespace {

// Where the baseline does not keep to a user's restrictions, the call's fastest choice that does.
absl::Status KeepRestrictions(const Restrictions& restrictions, CostTables* tables,
                              MappedModel* mapped) {
  const Graph& graph = mapped->graph;
  for (const auto& node : AnalyzeCompute(graph, tables->options().training).nodes) {
    const CallRestriction* restriction = restrictions.Of(node.id);
    if (restriction == nullptr) continue;
    ISOMER_ASSIGN_OR_RETURN(
        const CallTables* call,
        tables->Call(graph.node(node.id).op, node.operand_types, -1, restriction));
    const std::vector<float>& us = tables->NodeUs(*call, node);
    size_t best = 0;
    for (size_t c = 0; c < us.size(); ++c) {
      if (call->shares[c] == Share::kWhole && us[c] < us[best]) best = c;
    }
    mapped->choices[node.id] = call->space.choices[best];
  }
  return absl::OkStatus();
}

StopReason StopReasonOf(McmcResult::Stop stop, const Deadline& deadline) {
  switch (stop) {
    case McmcResult::Stop::kBudget:
      return StopReason::kBudget;
    case McmcResult::Stop::kNoImprovement:
      return StopReason::kNoImprovement;
    case McmcResult::Stop::kTarget:
    case McmcResult::Stop::kDeadline:
      break;
  }
  return deadline.Reached().value_or(StopReason::kTimeLimit);
}

}  // namespace

absl::StatusOr<SearchResult> McmcSearch(const Model& model, const SearchOptions& options,
                                        CostTables* tables) {
  const McmcOptions walk{.seed = options.seed,
                         .max_proposals = options.budget,
                         .deadline = Deadline::In(options.time_limit_s, options.watch)};
  ISOMER_ASSIGN_OR_RETURN(MappedModel start, MapBaseline(kDataParallel, model.graph, tables));
  start.copies_arranged = false;  // Task graphs have the choices that there are.
  if (options.restrictions != nullptr) {
    ISOMER_RETURN_IF_ERROR(KeepRestrictions(*options.restrictions, tables, &start));
  }
  ISOMER_ASSIGN_OR_RETURN(const std::unique_ptr<TaskGraph> graph,
                          TaskGraph::Create(model, start, tables, options.restrictions));
  ISOMER_ASSIGN_OR_RETURN(const McmcResult walked, SearchByMcmc(walk, graph.get()));
  SearchResult result;
  result.mapped = graph->Mapped();
  result.us = static_cast<double>(walked.best) * 1e-6;
  result.candidates = walked.proposals;
  result.pieces = result.distinct_pieces = 1;
  result.stop = StopReasonOf(walked.stop, walk.deadline);
  result.exact_mappings = false;  // of a random walk, nothing is
  return result;
}

}  // namespace isomer
