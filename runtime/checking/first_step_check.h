#ifndef ISOMER_RUNTIME_CHECKING_FIRST_STEP_CHECK_H_
#define ISOMER_RUNTIME_CHECKING_FIRST_STEP_CHECK_H_

#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "pcg/ir/plan.h"
#include "runtime/checking/check_step.h"
#include "runtime/device/backend.h"
#include "runtime/execution/host_values.h"
#include "runtime/execution/job.h"

namespace isomer {

struct FirstStepCheck {
  std::string reference;                // what the model was computed by (StepChecker::reference)
  std::optional<StepCheck> in_float32;  // of a plan of another precision
  StepCheck check;                      // in the plan's own
  double error_budget = 0;              // of ErrorOfAll, in the plan's own; 0: no limit

  bool is_within_budget() const {
    return error_budget == 0 || ErrorOfAll(check.comparison) <= error_budget;
  }
  // In each precision something was compared, nothing differs, and the budget is kept.
  bool agrees() const {
    return is_within_budget() && (!in_float32.has_value() || in_float32->comparison.agrees()) &&
           check.comparison.agrees();
  }
};

// Takes the step that `job` has just done, its first, again, on one device and without the
// optimiser's work, and compares outputs and gradients. REQUIRES: the job keeps gradients.
absl::StatusOr<FirstStepCheck> CheckFirstStep(const Plan& plan, const HostValues& weights,
                                              const HostValues& inputs, Backend* backend, Job* job);

}  // namespace isomer

#endif  // ISOMER_RUNTIME_CHECKING_FIRST_STEP_CHECK_H_
