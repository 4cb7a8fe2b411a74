// Random operand types of one call.
#ifndef ISOMER_GENERATOR_ASSIGNMENTS_CALL_TYPES_H_
#define ISOMER_GENERATOR_ASSIGNMENTS_CALL_TYPES_H_

#include <optional>
#include <vector>

#include "generator/assignments/sampler.h"
#include "pcg/ir/operator.h"
#include "pcg/ir/tensor_type.h"

namespace isomer {

// Draws degrees, copies and partials, all from `degrees`, for the operands of a call. `operands`
// are given with their sizes; those with `known` set keep their type. Returns false if what is
// known cannot be met. The result often, not always, type-checks.
bool DrawOperandTypes(const Operator& op, const std::vector<bool>& known,
                      const std::vector<int64_t>& degrees, Random* random,
                      std::vector<TensorType>* operands);

// 1, 2, 3 or 4, the smaller the likelier.
const std::vector<int64_t>& UsualDegrees();

}  // namespace isomer

#endif  // ISOMER_GENERATOR_ASSIGNMENTS_CALL_TYPES_H_
