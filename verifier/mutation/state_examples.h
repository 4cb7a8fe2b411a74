// Steps of inference that leave states for the next (pcg/ir/states.h), for mutants of what carries
// them there.
#ifndef ISOMER_VERIFIER_MUTATION_STATE_EXAMPLES_H_
#define ISOMER_VERIFIER_MUTATION_STATE_EXAMPLES_H_

#include <vector>

#include "pcg/schedule/lowering/example_graphs.h"
#include "pcg/schedule/schedule.h"

namespace isomer {

// Without a sequential form, and without a loss.
const std::vector<ExampleGraph>& StateExamples();

// As one of them is lowered.
ScheduleOptions StateOptions(const ExampleGraph& example);

}  // namespace isomer

#endif  // ISOMER_VERIFIER_MUTATION_STATE_EXAMPLES_H_
