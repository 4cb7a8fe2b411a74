#ifndef ISOMER_MODELS_EVALUATION_FORM_H_
#define ISOMER_MODELS_EVALUATION_FORM_H_

#include "absl/status/status.h"
#include "pcg/ir/plan.h"

namespace isomer {

// Makes of a model that trains the one that is used: without Dropout and its seed, and with running
// statistics in batch norms, where the model has them (Model::statistics). What the runtime does
// when it evaluates a plan that trains (runtime/execution/evaluation_calls.h), as a model.
// REQUIRES: the types of the model are sequential.
absl::Status ToEvaluationForm(Model* model);

}  // namespace isomer

#endif  // ISOMER_MODELS_EVALUATION_FORM_H_
