#ifndef ISOMER_RUNTIME_CHECKING_COMPARE_H_
#define ISOMER_RUNTIME_CHECKING_COMPARE_H_

#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "pcg/ir/plan.h"
#include "runtime/execution/host_values.h"
#include "runtime/execution/job.h"

namespace isomer {

// Outputs and gradients of one step, by name.
struct StepValues {
  HostValues outputs = {};
  HostValues gradients = {};  // of all weights; empty in inference
};

// How far rounding may take them, by name, in the Euclidean norm (rounding_bounds.h).
struct StepBounds {
  std::map<std::string, double> outputs = {}, gradients = {};
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

// Of a tensor, in the Euclidean norm: where rounding makes a few elements jump (another maximum of
// a pooling window, another side of a ReLU), it says how many do, and how far.
struct Difference {
  double error = 0;  // of what was computed (Distance); infinite where it is missing
  double norm = 0;   // of what was expected (Norm)
  double bound = 0;  // how large an error rounding may make

  // Rounding alone may change all of it: gradients that are zero in theory, and what a precision is
  // too coarse for.
  bool comparable() const { return bound < norm || (bound == 0 && norm == 0); }
  // What is not comparable is still wrong where it is far beyond its bound. Not at once, because
  // draws of it may differ by orders: a normalisation of numbers that rounding makes equal.
  bool agrees() const { return error <= (comparable() ? bound : kFarBeyond * bound); }
  static constexpr double kFarBeyond = 10;
  double relative_error() const { return error == 0 ? 0 : error / norm; }
};

struct Comparison {
  std::map<std::string, Difference> outputs, gradients;

  bool differs() const;   // a tensor by more than rounding may do
  bool compared() const;  // any tensor: there is one that is comparable
  bool agrees() const { return compared() && !differs(); }
  double max_rel_error = 0;  // of what is comparable, or does not agree
  std::string worst;         // "gradient of layer0/q": the error is nearest to its bound, or above
  Difference of_worst;
  std::vector<std::string> not_comparable;
};
// How far what was computed is off, of the Euclidean norm of what was expected: of all gradients
// together, in inference of all outputs.
double ErrorOfAll(const Comparison& comparison);
Comparison Compare(const StepValues& expected, const StepValues& actual, const StepBounds& bounds);

// The Euclidean norm of a - b. Equal infinities, and what stands for them (StandsForInfinity), do
// not differ; infinite where a number is not finite otherwise, or the shapes differ.
double Distance(const Array<double>& a, const Array<double>& b);
// The Euclidean norm of what does not stand for infinity; infinite where there is a NaN.
double Norm(const Array<double>& array);

}  // namespace isomer

#endif  // ISOMER_RUNTIME_CHECKING_COMPARE_H_
