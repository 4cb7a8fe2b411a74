#ifndef ISOMER_RUNTIME_COMPARE_H_
#define ISOMER_RUNTIME_COMPARE_H_

#include <map>
#include <string>

#include "absl/status/statusor.h"
#include "pcg/plan.h"
#include "runtime/host_values.h"
#include "runtime/job.h"

namespace isomer {

// Outputs and gradients of one step, by name.
struct StepValues {
  HostValues outputs;
  HostValues gradients;  // of all weights; empty in inference
};

// What the unoptimised model computes, by the reference evaluator in double.
absl::StatusOr<StepValues> ReferenceStep(const Model& model, const HostValues& weights,
                                         const HostValues& inputs, bool training);
// The same by the kernels of a backend on one device: for models on which the evaluator is too
// slow.
absl::StatusOr<StepValues> SequentialStep(const Model& model, const HostValues& weights,
                                          const HostValues& inputs, bool training,
                                          Backend* backend);
// What the job computed in its last step.
absl::StatusOr<StepValues> ValuesOfLastStep(const Model& model, Job* job, bool training);

// Largest absolute difference of a tensor, relative to its largest absolute value. A tensor that is
// zero in theory holds the rounding of the reference (1e-9 of the largest value or less): its
// difference counts relative to the largest value of all outputs, or of all gradients.
struct Comparison {
  std::map<std::string, double> outputs, gradients;
  double max_rel_error = 0;
  std::string worst;  // "gradient of layer0/q"
};
Comparison Compare(const StepValues& expected, const StepValues& actual);

}  // namespace isomer

#endif  // ISOMER_RUNTIME_COMPARE_H_
