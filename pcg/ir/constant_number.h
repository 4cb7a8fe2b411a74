// Constants of a model that are one number.
#ifndef ISOMER_PCG_IR_CONSTANT_NUMBER_H_
#define ISOMER_PCG_IR_CONSTANT_NUMBER_H_

#include <optional>

#include "pcg/ir/plan.h"

namespace isomer {

// The finite number that all elements of a constant are; none for another node, and for a constant
// whose values the model does not have.
std::optional<double> NumberOfConstant(const Model& model, const Node& node);

}  // namespace isomer

#endif  // ISOMER_PCG_IR_CONSTANT_NUMBER_H_
