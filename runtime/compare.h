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
  // What a tensor that is zero in theory may hold, relative to the largest value: the rounding of
  // the arithmetic that made it.
  double rounding = 1e-9;
};

// What the unoptimised model computes, by the reference evaluator in double.
absl::StatusOr<StepValues> ReferenceStep(const Model& model, const HostValues& weights,
                                         const HostValues& inputs, bool training);
// The same by the kernels of a backend on one device: for models on which the evaluator is too
// slow.
absl::StatusOr<StepValues> SequentialStep(const Model& model, const HostValues& weights,
                                          const HostValues& inputs, bool training,
                                          Backend* backend);
// What the job computed in a step, of the last that it ran between two flushes.
absl::StatusOr<StepValues> ValuesOfStep(const Model& model, Job* job, bool training,
                                        int32_t number = 0);

// How the error of a tensor is measured, relative to the same measure of the tensor.
enum class ErrorNorm {
  kLargest,    // the largest absolute difference: for float32
  kEuclidean,  // the root of the sum of squares: for low precision, whose rounding makes a few
               // elements jump (another maximum of a pooling window, another side of a ReLU)
};

// A tensor that is zero in theory (keys' biases do not change what attention gives) holds the
// rounding of the reference: its difference counts relative to the largest value of all outputs, or
// of all gradients.
struct Comparison {
  std::map<std::string, double> outputs, gradients;
  double max_rel_error = 0;
  std::string worst;  // "gradient of layer0/q"
};
Comparison Compare(const StepValues& expected, const StepValues& actual,
                   ErrorNorm norm = ErrorNorm::kLargest);

}  // namespace isomer

#endif  // ISOMER_RUNTIME_COMPARE_H_
