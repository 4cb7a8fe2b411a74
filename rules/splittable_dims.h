// SplittableDims (rule.h) of a call whose sharding is at hand.
#ifndef ISOMER_RULES_SPLITTABLE_DIMS_H_
#define ISOMER_RULES_SPLITTABLE_DIMS_H_

#include <vector>

#include "absl/types/span.h"
#include "pcg/type_inference.h"
#include "rules/rule.h"

namespace isomer {

std::vector<SplittableDim> SplittableDims(const Sharding& sharding,
                                          absl::Span<const TensorType> operands);

}  // namespace isomer

#endif  // ISOMER_RULES_SPLITTABLE_DIMS_H_
