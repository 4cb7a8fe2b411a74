#include "models/load_plan.h"

#include <tuple>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "models/carry_states.h"
#include "models/loss.h"
#include "pcg/schedule/schedule.h"
#include "pcg/support/file.h"
#include "pcg/support/proto_io.h"
#include "pcg/support/status_macros.h"

namespace isomer {

absl::StatusOr<bool> IsPlanFile(const std::string& spec) {
  if (absl::StartsWith(spec, "zoo:")) return false;
  ISOMER_ASSIGN_OR_RETURN(const std::string contents, ReadFile(spec));
  return DeclaredKind(contents) == "plan";
}

absl::StatusOr<Plan> LoadPlanOrModel(const std::string& spec, const PlanOptions& options) {
  ISOMER_ASSIGN_OR_RETURN(const bool is_plan, IsPlanFile(spec));
  if (is_plan) return LoadPlan(spec);
  Plan plan;
  ISOMER_ASSIGN_OR_RETURN(plan.model, LoadAnyModel(spec, options.load));
  plan.mode = options.mode;
  if (plan.mode != "training" && plan.mode != "inference") {
    return absl::InvalidArgumentError(
        absl::StrCat("--mode=", plan.mode, ": training or inference is expected"));
  }
  ISOMER_ASSIGN_OR_RETURN(std::tie(plan.precision, plan.fp8),
                          ParsePlanPrecision(options.precision));
  ISOMER_ASSIGN_OR_RETURN(plan.update.optimizer, ParseOptimizer(options.optimizer));
  if (plan.mode == "training") ISOMER_RETURN_IF_ERROR(AttachLoss(&plan.model, "auto"));
  if (plan.mode == "inference") {
    std::vector<std::string> notes;
    ISOMER_RETURN_IF_ERROR(CarryStates(options.carry, &plan.model, &notes));
    if (options.load.notes != nullptr) {
      options.load.notes->insert(options.load.notes->end(), notes.begin(), notes.end());
    }
  } else if (!options.carry.empty()) {
    return absl::InvalidArgumentError("--carry is for --mode=inference");
  }
  if (plan.fp8.any()) plan.fp8.kept = WeightsOfFirstAndLastProducts(plan.model.graph);
  plan.graph = plan.model.graph;
  plan.views = SequentialViews(plan.graph);
  return plan;
}

}  // namespace isomer
