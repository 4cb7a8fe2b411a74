#include "optimizer/fitting.h"

#include <cmath>
#include <string>
#include <utility>

#include "optimizer/segments.h"
#include "pcg/plan.h"
#include "pcg/support/status_macros.h"

namespace isomer {
namespace {

// Prices of memory to try until a plan fits, in us per byte.
constexpr double kFirstPrice = 1e-7;
constexpr double kPriceStep = 8;
constexpr double kLastPrice = 1;

absl::Status ConsiderMethodsOf(const Plan& original, const std::string& origin, Contest* contest) {
  for (UpdateMethod method :
       {UpdateMethod::kSharded, UpdateMethod::kShardedWeights, UpdateMethod::kOwner}) {
    Plan plan = original;
    plan.update.method = method;
    ISOMER_RETURN_IF_ERROR(contest->Consider(std::move(plan), origin).status());
  }
  return absl::OkStatus();
}

absl::Status MakeSmaller(const FittingOptions& options, Plan plan, const std::string& origin,
                         Contest* contest) {
  if (contest->fits() || !options.training) return absl::OkStatus();
  if (plan.recomputed.empty()) {
    const double nodes = plan.graph.num_nodes();
    plan.recomputed = NodesBetweenBorders(plan.graph, static_cast<int>(std::sqrt(nodes)));
    ISOMER_RETURN_IF_ERROR(contest->Consider(plan, origin).status());
  }
  if (contest->fits() || !options.choose_update_method) return absl::OkStatus();
  return ConsiderMethodsOf(plan, origin, contest);
}

}  // namespace

absl::Status ConsiderUpdateMethods(const FittingOptions& options, Contest* contest) {
  if (!options.training || !options.choose_update_method || contest->empty()) {
    return absl::OkStatus();
  }
  // Copies: what takes part may replace them.
  const Plan best = contest->best().plan;
  const std::string origin = contest->best().origin;
  return ConsiderMethodsOf(best, origin, contest);
}

absl::Status MakeFit(const FittingOptions& options, const SearchAtPrice& search, Contest* contest) {
  if (contest->fits()) return absl::OkStatus();
  ISOMER_RETURN_IF_ERROR(
      MakeSmaller(options, contest->fastest(), std::string(contest->fastest_origin()), contest));
  bool more = true;
  for (double price = kFirstPrice; more && !contest->fits() && price <= kLastPrice;
       price *= kPriceStep) {
    ISOMER_ASSIGN_OR_RETURN(more, search(price));
    const std::string origin = contest->best().origin;
    ISOMER_RETURN_IF_ERROR(MakeSmaller(options, contest->best().plan, origin, contest));
  }
  return absl::OkStatus();
}

}  // namespace isomer
