// What workers do: the steps of generation that are functions from bytes to bytes.
#ifndef ISOMER_GENERATOR_PIPELINE_STEPS_H_
#define ISOMER_GENERATOR_PIPELINE_STEPS_H_

#include <functional>

#include "generator/pipeline/prove_rules.h"
#include "generator/workers/workers.h"

namespace isomer {

// Of the items of step_items.h. `make_judge` is called once per worker; null: nothing is proved.
MakeSteps GeneratorSteps(std::function<Judge()> make_judge);

}  // namespace isomer

#endif  // ISOMER_GENERATOR_PIPELINE_STEPS_H_
