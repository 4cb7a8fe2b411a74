#ifndef ISOMER_VERIFIER_CERTIFICATE_FP8_CALLS_H_
#define ISOMER_VERIFIER_CERTIFICATE_FP8_CALLS_H_

#include "absl/status/status.h"
#include "pcg/ir/graph.h"
#include "pcg/ir/plan.h"

namespace isomer {

// Ok if in `graph`, the plan's in its precision, just those calls multiply in 8 bits of which the
// plan says so: MatMul and Linear in bfloat16 of an arrangement of weights by something else, with
// the plan's scaling, unless one of the weights is kept. The error names the call.
absl::Status CheckFp8Calls(const Plan& plan, const Graph& graph);

}  // namespace isomer

#endif  // ISOMER_VERIFIER_CERTIFICATE_FP8_CALLS_H_
