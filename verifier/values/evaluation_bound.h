// What is too large to be evaluated in search of a difference. The sizes of instances are chosen
// small, but constants of a rule (a depth, a kernel, a shape) are whatever its author wrote.
#ifndef ISOMER_VERIFIER_VALUES_EVALUATION_BOUND_H_
#define ISOMER_VERIFIER_VALUES_EVALUATION_BOUND_H_

#include "absl/status/status.h"
#include "pcg/ir/declaration.h"
#include "pcg/ir/graph.h"

namespace isomer {

// An error if a statement goes over more points, or tensors have more elements, than are evaluated
// in a tenth of a second or so. REQUIRES: known sizes.
absl::Status ExpectFewPoints(const Declaration& d);
// The same of all calls, and of the inputs, of a graph.
absl::Status ExpectFewPoints(const Graph& graph);

}  // namespace isomer

#endif  // ISOMER_VERIFIER_VALUES_EVALUATION_BOUND_H_
