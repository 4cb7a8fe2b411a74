// That a parallel operator's dual is its gradient.
#ifndef ISOMER_VERIFIER_GRADIENTS_GRADIENT_DUALS_H_
#define ISOMER_VERIFIER_GRADIENTS_GRADIENT_DUALS_H_

#include "absl/status/status.h"
#include "verifier/gradients/gradient.h"

namespace isomer {

// For y = P(x), P of `kind` along every axis, by every degree: whenever P type-checks, the duals
// take GradientType(y) to GradientType(x), decided in exponents of primes for all degrees, copies
// and partials. REQUIRES: Partition, Combine, Replicate or Reduce.
absl::Status ProveDualTypes(OpKind kind, const Duals& duals);

// The same for any parallel operator at small types, through type inference; and there the duals of
// any gradient of y have the meaning that reverse mode finds, exactly, over the prime field.
absl::Status CheckDualsAtSmallTypes(OpKind kind, const Duals& duals);

}  // namespace isomer

#endif  // ISOMER_VERIFIER_GRADIENTS_GRADIENT_DUALS_H_
