// Replays one step of a derivation, trusting neither the matcher nor the optimizer.
//
// This is a second reading of what a rule means on a graph (rules/rewrite.h has the first): a step
// says where the source pattern lies, and everything it says is looked up in the graph.
#ifndef ISOMER_VERIFIER_STEP_REPLAY_H_
#define ISOMER_VERIFIER_STEP_REPLAY_H_

#include "absl/status/status.h"
#include "pcg/graph.h"
#include "pcg/plan.h"
#include "rules/rule.h"

namespace isomer {

// Adds the target's nodes to `graph` and redirects the uses of the source outputs. The error says
// what of the rule does not hold in the graph; then the graph is of no further use.
absl::Status ReplayStep(const Rule& rule, const DerivationStep& step, Graph* graph);

}  // namespace isomer

#endif  // ISOMER_VERIFIER_STEP_REPLAY_H_
