// A step of a plan with that of the unoptimised model: isomer-run --check.
//
// A plan of low precision, or that sums gradients in it, is checked twice. In float32, where
// rounding is small beside every mistake; this shows that it computes the model. And in its own
// precision, where rounding may change a gradient as much as a missing shard does; this shows that
// it does not do more.
#ifndef ISOMER_RUNTIME_CHECKING_CHECK_STEP_H_
#define ISOMER_RUNTIME_CHECKING_CHECK_STEP_H_

#include <vector>

#include "absl/status/statusor.h"
#include "pcg/ir/plan.h"
#include "runtime/checking/compare.h"
#include "runtime/checking/rounding.h"
#include "runtime/device/backend.h"
#include "runtime/execution/host_values.h"
#include "runtime/execution/job.h"

namespace isomer {

struct StepCheck {
  Rounding rounding;  // what the bounds are of
  Comparison comparison;
};

// What the model computes in a step, and what a plan of it may differ by.
class StepChecker {
 public:
  // By the reference evaluator, in double, or for large models by the cpu backend: what is checked
  // is never compared with itself on a GPU. REQUIRES: all arguments outlive the checker.
  static absl::StatusOr<StepChecker> Make(const Plan& plan, const HostValues& weights,
                                          const HostValues& inputs);

  // Bounds are those of rounding_bounds.h.
  absl::StatusOr<StepCheck> Check(const StepValues& actual, const Rounding& rounding) const;

  const char* reference() const { return evaluator_ ? "evaluator" : "cpu backend"; }

 private:
  StepChecker(const Plan& plan, const HostValues& weights, const HostValues& inputs)
      : plan_(plan), weights_(weights), inputs_(inputs) {}

  const Plan& plan_;
  const HostValues& weights_;
  const HostValues& inputs_;
  bool evaluator_ = false;
  StepValues expected_;
};

// The first step of the plan on its devices.
struct PlanStep {
  StepValues values;
  Rounding rounding;
};

// `options`: of the job that runs it. Of several steps between two flushes the first is looked at.
absl::StatusOr<PlanStep> FirstStep(const Plan& plan, const HostValues& weights,
                                   const HostValues& inputs, Backend* backend,
                                   const JobOptions& options);

// That step, in float32.
absl::StatusOr<StepCheck> CheckInFloat32(const StepChecker& checker, const Plan& plan,
                                         const HostValues& weights, const HostValues& inputs,
                                         Backend* backend, const JobOptions& options);

}  // namespace isomer

#endif  // ISOMER_RUNTIME_CHECKING_CHECK_STEP_H_
