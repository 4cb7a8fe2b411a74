#include "optimizer/proposal/spread_branches.h"

#include <utility>

#include "optimizer/proposal/search_context.h"
#include "pcg/support/status_macros.h"

namespace isomer {

constinit const Proposer kSpreadBranches = {
    "spread_branches", "branches in an order that hides exchanges", Proposer::When::kAfterwards,
    [](const SearchContext& context, const Submachine&) {
      return context.options.plan.empty() && !context.contest.PredictionsAreSlow();
    },
    [](SearchContext* context, Submachine*) -> absl::Status {
      Plan plan = context->contest.best().plan;
      ISOMER_ASSIGN_OR_RETURN(const int64_t moments, NumMicroBatches(plan.graph, plan.views));
      if (moments > 1) return absl::OkStatus();
      plan.spread_branches = true;
      return context->contest.Consider(std::move(plan), context->contest.best().origin).status();
    }};

}  // namespace isomer
