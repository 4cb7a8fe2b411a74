#include "optimizer/proposal/one_piece.h"

#include <utility>

#include "optimizer/proposal/search_context.h"
#include "optimizer/proposal/spread_calls.h"
#include "pcg/support/status_macros.h"

namespace isomer {
namespace {

// Branches that only meet concurrent or not, and the weight of synchronisation.
constexpr std::pair<bool, double> kWays[] = {{true, 1}, {true, 0.5}, {true, 0}, {false, 1}};

// However slow the others are: concurrent branches may be what part of a machine is for.
bool IsSmall(const SearchContext& context, const Submachine& on) {
  const Strategy strategy = context.options.strategy;
  return on.is_searched &&
         (strategy == Strategy::kHierarchical || strategy == Strategy::kSequential) &&
         context.restrictions.empty() && !context.contest.PredictionsAreSlow() &&
         on.best.mapping.has_value() &&
         context.policy().IsWorthWalking(static_cast<int64_t>(on.best.mapping->choices.size()),
                                         on.devices);
}

// The model's own graph (null), or what algebra has made of it.
absl::Status MapInOnePiece(const Rewritten* graph, SearchContext* context, Submachine* on) {
  for (const auto& [concurrent, weight] : kWays) {
    if (context->deadline.Reached().has_value()) return absl::OkStatus();
    ISOMER_ASSIGN_OR_RETURN(
        const MappedModel mapped,
        context->searches.MapInOnePiece(graph, concurrent, context->OptionsOn(*on, weight)));
    ISOMER_RETURN_IF_ERROR(context->Consider(mapped, on).status());
    ISOMER_RETURN_IF_ERROR(ConsiderSpreadCalls(mapped, context, on));
  }
  return absl::OkStatus();
}

absl::Status ProposeOnePiece(SearchContext* context, Submachine* on) {
  const Rewritten rewritten = {on->best.mapping->steps, on->best.mapping->graph};
  if (!context->leaves_model_as_it_is) {
    ISOMER_RETURN_IF_ERROR(MapInOnePiece(nullptr, context, on));
  }
  return rewritten.steps.empty() ? absl::OkStatus() : MapInOnePiece(&rewritten, context, on);
}

}  // namespace

constinit const Proposer kOnePiece = {"one_piece",
                                      "the graph mapped without cuts, branches concurrent",
                                      Proposer::When::kRefine, IsSmall, ProposeOnePiece};

}  // namespace isomer
