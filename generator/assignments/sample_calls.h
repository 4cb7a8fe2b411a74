// Calls of operators to look at: shapes small enough to run, and every attribute that matters.
#ifndef ISOMER_GENERATOR_ASSIGNMENTS_SAMPLE_CALLS_H_
#define ISOMER_GENERATOR_ASSIGNMENTS_SAMPLE_CALLS_H_

#include <vector>

#include "pcg/ir/operator_call.h"

namespace isomer {

// Calls of a declared operator that type-check, none of them parallel. Sizes are multiples of 2
// wherever an operator might be partitioned. Shapes of most ranks; attributes on both sides of
// every distinction that a declaration makes (one group or several, padded or not, kept or dropped
// dims).
const std::vector<OperatorCall>& SampleCalls(OpKind kind);

}  // namespace isomer

#endif  // ISOMER_GENERATOR_ASSIGNMENTS_SAMPLE_CALLS_H_
