// A second engine for what normal forms prove: evaluation at small sizes.
#ifndef ISOMER_VERIFIER_VALUES_SMALL_EVALUATION_H_
#define ISOMER_VERIFIER_VALUES_SMALL_EVALUATION_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "verifier/elements/term.h"

namespace isomer {

// True if both terms have the same elements at small sizes (the symbols' sizes drawn from `seed`),
// for random elements of a prime field, wherever both are defined. Errors: evaluation failed.
absl::StatusOr<bool> EqualAtSmallSizes(const TermPool& pool, TermId a, TermId b, uint64_t seed);

}  // namespace isomer

#endif  // ISOMER_VERIFIER_VALUES_SMALL_EVALUATION_H_
