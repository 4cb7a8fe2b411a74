// SplittableDims (rule.h) of a call whose sharding is at hand.
#ifndef ISOMER_RULES_LANGUAGE_SPLITTABLE_DIMS_H_
#define ISOMER_RULES_LANGUAGE_SPLITTABLE_DIMS_H_

#include <vector>

#include "absl/types/span.h"
#include "pcg/ir/type_inference.h"
#include "rules/language/rule.h"

namespace isomer {

std::vector<SplittableDim> SplittableDims(const Sharding& sharding,
                                          absl::Span<const TensorType> operands);

}  // namespace isomer

#endif  // ISOMER_RULES_LANGUAGE_SPLITTABLE_DIMS_H_
