// A hash of a call, for tables in memory: quicker than Operator::Hash, and not for files. Equal
// calls have equal hashes; lists of extents count by their length. Compare the calls besides.
#ifndef ISOMER_PCG_IR_CALL_HASH_H_
#define ISOMER_PCG_IR_CALL_HASH_H_

#include <cstdint>
#include <variant>
#include <vector>

#include "absl/types/span.h"
#include "pcg/ir/operator.h"
#include "pcg/ir/tensor_type.h"
#include "pcg/support/hash.h"

namespace isomer {

inline uint64_t QuickHashOfCall(const Operator& op, absl::Span<const TensorType> operands) {
  uint64_t hash = static_cast<uint64_t>(op.kind());
  for (const Attribute& attribute : op.attributes()) {
    if (const auto* number = std::get_if<int64_t>(&attribute.value)) {
      hash = HashCombine(hash, static_cast<uint64_t>(*number));
    } else if (const auto* list = std::get_if<std::vector<int64_t>>(&attribute.value)) {
      for (int64_t i : *list) hash = HashCombine(hash, static_cast<uint64_t>(i));
    } else if (const auto* extents = std::get_if<std::vector<Extent>>(&attribute.value)) {
      hash = HashCombine(hash, extents->size());
    }
  }
  for (const TensorType& type : operands) {
    hash = HashCombine(hash, static_cast<uint64_t>(type.dtype), static_cast<uint64_t>(type.copies),
                       static_cast<uint64_t>(type.partials));
    for (const Dim& dim : type.dims) {
      hash = HashMix(hash ^ (static_cast<uint64_t>(dim.size) << 20) ^
                     static_cast<uint64_t>(dim.degree));
    }
  }
  return hash;
}

}  // namespace isomer

#endif  // ISOMER_PCG_IR_CALL_HASH_H_
