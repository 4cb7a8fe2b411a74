// Replays a step that names no rule, and says itself which calls it puts in the place of which.
//
// Nothing is known of such a step beforehand: the calls that are there and those that are stated
// are two sides over the tensors that they take from outside, and whether these compute the same is
// asked as it is of a rule's step (equal_sides.h).
#ifndef ISOMER_VERIFIER_CERTIFICATE_STATED_STEP_H_
#define ISOMER_VERIFIER_CERTIFICATE_STATED_STEP_H_

#include "absl/status/status.h"
#include "pcg/ir/plan.h"
#include "verifier/certificate/replay_graph.h"
#include "verifier/certificate/step_replay.h"

namespace isomer {

// Adds the calls to `graph` and redirects the uses of what they replace. The error says what of the
// step does not hold in the graph; then the graph is of no further use.
// REQUIRES: the step has no rule.
absl::Status ReplayStatedStep(const DerivationStep& step, ReplayGraph* graph, SideCheck equal);

}  // namespace isomer

#endif  // ISOMER_VERIFIER_CERTIFICATE_STATED_STEP_H_
