// What models compute, by the evaluator.
#ifndef ISOMER_TESTS_MODELS_MODEL_VALUES_H_
#define ISOMER_TESTS_MODELS_MODEL_VALUES_H_

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "pcg/evaluation/evaluator.h"
#include "pcg/ir/plan.h"

namespace isomer {

// The values of all nodes. Leaves hold what the model has of them; into an array of the sizes of
// one that it has nothing of, of zeros, `fill` writes.
absl::StatusOr<Values<double>> EvaluateModel(
    const Model& model, absl::FunctionRef<void(const Node&, Array<double>*)> fill);

}  // namespace isomer

#endif  // ISOMER_TESTS_MODELS_MODEL_VALUES_H_
