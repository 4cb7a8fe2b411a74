// Operators and types as configurations write them down.
#ifndef ISOMER_GENERATOR_ENUMERATION_CONFIGURED_OPERATORS_H_
#define ISOMER_GENERATOR_ENUMERATION_CONFIGURED_OPERATORS_H_

#include <cstdint>
#include <vector>

#include "pcg/ir/operator.h"
#include "pcg/ir/tensor_type.h"

namespace isomer::configured {

inline Operator Of(OpKind kind) { return Operator(kind); }
inline Operator Scale(double factor) { return Operator(OpKind::kScale, {{"factor", factor}}); }
inline Operator Concat(int64_t axis) { return Operator(OpKind::kConcat, {{"axis", axis}}); }
// The last two axes of a matrix or of a batch of matrices; the enumerator fits it to the rank.
inline Operator TransposeLast() {
  return Operator(OpKind::kTranspose, {{"perm", std::vector<int64_t>{1, 0}}});
}
// REQUIRES: it is the text of a type.
inline TensorType Type(const char* text) { return *ParseTensorType(text); }

}  // namespace isomer::configured

#endif  // ISOMER_GENERATOR_ENUMERATION_CONFIGURED_OPERATORS_H_
