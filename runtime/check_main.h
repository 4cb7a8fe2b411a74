// isomer-run --check: a step of a plan with that of the unoptimised model.
#ifndef ISOMER_RUNTIME_CHECK_MAIN_H_
#define ISOMER_RUNTIME_CHECK_MAIN_H_

#include "absl/status/statusor.h"
#include "pcg/ir/plan.h"
#include "pcg/support/json.h"
#include "runtime/device/backend.h"
#include "runtime/execution/host_values.h"
#include "runtime/execution/job.h"

namespace isomer {

// Takes the first step again, on one device and without the optimiser's work, says what agrees,
// what does not and what cannot be compared, and writes it under "check". False if anything
// differs by more than rounding may do (rounding_bounds.h), or nothing can be compared.
absl::StatusOr<bool> CheckAndPrintFirstStep(const Plan& plan, const HostValues& weights,
                                            const HostValues& inputs, Backend* backend, Job* job,
                                            Json* summary);

}  // namespace isomer

#endif  // ISOMER_RUNTIME_CHECK_MAIN_H_
