#include "pcg/ir/finite_cast.h"

#include <cstdint>
#include <string>

namespace isomer {

double LargestNumber(DataType low) { return low == DataType::kFloat16 ? 65504 : 0x1.FEp127; }

Operator FiniteCast(DataType low) {
  return Operator(OpKind::kCast,
                  {{"to", static_cast<int64_t>(low)}, {std::string(kFiniteAttribute), int64_t{1}}});
}

bool IsFiniteCast(const Operator& op) {
  return op.kind() == OpKind::kCast && op.Find(kFiniteAttribute) != nullptr;
}

}  // namespace isomer
