// Replays one step of a derivation, trusting neither the matcher nor the optimizer.
//
// This is a second reading of what a rule means on a graph (rules/rewrite.h has the first): a step
// says where the source pattern lies, and everything it says is looked up in the graph.
#ifndef ISOMER_VERIFIER_CERTIFICATE_STEP_REPLAY_H_
#define ISOMER_VERIFIER_CERTIFICATE_STEP_REPLAY_H_

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "pcg/plan.h"
#include "rules/rule.h"
#include "verifier/certificate/replay_graph.h"

namespace isomer {

// Ok if the two sides meet the premise of a theorem that says they are equal (the condition
// by_structure).
using PremiseCheck =
    absl::FunctionRef<absl::Status(const ConcreteSide& source, const ConcreteSide& target)>;

// Adds the target's nodes to `graph` and redirects the uses of the source outputs. The error says
// what of the rule does not hold in the graph; then the graph is of no further use.
absl::Status ReplayStep(const Rule& rule, const DerivationStep& step, ReplayGraph* graph,
                        PremiseCheck equal);

}  // namespace isomer

#endif  // ISOMER_VERIFIER_CERTIFICATE_STEP_REPLAY_H_
