// Casts to a low type that leave what is finite finite.
//
// The lowest number of float32, by which exporters hide what attention must not see, is beyond
// bfloat16's and float16's: rounding makes it minus infinity, and a softmax of a row in which all
// is hidden not a number. Such a cast takes the largest number that the type has instead. What is
// infinite stays so. Precision (precision.h) casts so what is made from integers and constants
// alone, and in inference what comes from the host.
#ifndef ISOMER_PCG_IR_FINITE_CAST_H_
#define ISOMER_PCG_IR_FINITE_CAST_H_

#include "absl/strings/string_view.h"
#include "pcg/ir/operator.h"
#include "pcg/ir/tensor_type.h"

namespace isomer {

// Of Cast; like Fp8's, none that a model or a plan's graph has: the lowering sets it (precision.h).
inline constexpr absl::string_view kFiniteAttribute = "finite";

// REQUIRES: bfloat16 or float16.
double LargestNumber(DataType low);
Operator FiniteCast(DataType low);
bool IsFiniteCast(const Operator& op);

}  // namespace isomer

#endif  // ISOMER_PCG_IR_FINITE_CAST_H_
