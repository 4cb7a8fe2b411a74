#include "runtime/checking/first_step_check.h"

#include "pcg/support/status_macros.h"
#include "runtime/checking/rounding_bounds.h"

namespace isomer {

absl::StatusOr<FirstStepCheck> CheckFirstStep(const Plan& plan, const HostValues& weights,
                                              const HostValues& inputs, Backend* backend,
                                              Job* job) {
  ISOMER_ASSIGN_OR_RETURN(const StepChecker checker, StepChecker::Make(plan, weights, inputs));
  FirstStepCheck first;
  first.reference = checker.reference();
  first.error_budget = plan.fp8.error_budget;
  if (IsLow(RoundingOf(plan.precision, job->schedule()))) {
    ISOMER_ASSIGN_OR_RETURN(
        first.in_float32, CheckInFloat32(checker, plan, weights, inputs, backend, job->options()));
  }
  ISOMER_ASSIGN_OR_RETURN(const StepValues actual,
                          ValuesOfStep(plan.model, job, plan.mode == "training"));
  ISOMER_ASSIGN_OR_RETURN(
      first.check, checker.Check(actual, RoundingOf(plan.precision, job->schedule(), plan.fp8)));
  return first;
}

}  // namespace isomer
