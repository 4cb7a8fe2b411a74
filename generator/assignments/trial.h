// Trying a rule at one assignment.
#ifndef ISOMER_GENERATOR_ASSIGNMENTS_TRIAL_H_
#define ISOMER_GENERATOR_ASSIGNMENTS_TRIAL_H_

#include <vector>

#include "absl/status/statusor.h"
#include "generator/assignments/sampler.h"
#include "generator/assignments/type_oracle.h"
#include "pcg/evaluation/evaluator.h"
#include "rules/language/rule.h"

namespace isomer {

// Whether the target type-checks with the output types of the source. REQUIRES: the source does.
bool TypesAgree(const Rule& rule, const Binding& binding, TypeOracle* oracle);

// Random values of a tensor; those of index tensors are 0, 1 or 2. Partials of a bool are a bool:
// at most one of them holds, as a look-up that is split over its table gives them.
template <typename T>
Value<T> RandomValue(const TensorType& type, Random* random);

// Runs both sides shard by shard over the prime field on random inputs and compares the meanings of
// their outputs. Errors: a side does not type-check.
absl::StatusOr<bool> ValuesAgree(const Rule& rule, const Binding& binding, Random* random);
// Both; an error is no.
bool TypesAndValuesAgree(const Rule& rule, const Binding& binding, TypeOracle* oracle,
                         Random* random);

// The same over doubles: the largest difference, relative to the largest element of the output.
absl::StatusOr<double> LargestRelativeDifference(const Rule& rule, const Binding& binding,
                                                 Random* random);

}  // namespace isomer

#endif  // ISOMER_GENERATOR_ASSIGNMENTS_TRIAL_H_
