// Replays one step of a derivation, trusting neither the matcher, nor the optimizer, nor the rule.
//
// A step says where a rule's source pattern lies, and the rule what is put in its place. Both are
// looked up in the graph and built; whether they compute the same is asked of the calls that this
// gives (equal_sides.h), so that a rule is a recipe, and a false one is refused where it is used.
#ifndef ISOMER_VERIFIER_CERTIFICATE_STEP_REPLAY_H_
#define ISOMER_VERIFIER_CERTIFICATE_STEP_REPLAY_H_

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "pcg/ir/plan.h"
#include "rules/language/rule.h"
#include "verifier/certificate/equal_sides.h"
#include "verifier/certificate/replay_graph.h"

namespace isomer {

// Ok if the two sides have equal outputs. `numbers`: inputs that are constants of one number.
using SideCheck = absl::FunctionRef<absl::Status(
    const ConcreteSide& source, const ConcreteSide& target, const InputNumbers& numbers)>;

// The error of a step whose sides were not found equal.
absl::Status NotShownEqual(const absl::Status& why);

// Adds the target's nodes to `graph` and redirects the uses of the source outputs. The error says
// what of the step does not hold in the graph; then the graph is of no further use.
absl::Status ReplayStep(const Rule& rule, const DerivationStep& step, ReplayGraph* graph,
                        SideCheck equal);

}  // namespace isomer

#endif  // ISOMER_VERIFIER_CERTIFICATE_STEP_REPLAY_H_
