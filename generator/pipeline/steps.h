// What workers do: the steps of generation that are functions from bytes to bytes.
#ifndef ISOMER_GENERATOR_PIPELINE_STEPS_H_
#define ISOMER_GENERATOR_PIPELINE_STEPS_H_

#include <cstdint>
#include <functional>

#include "generator/assignments/type_oracle.h"
#include "generator/enumeration/configuration.h"
#include "generator/pipeline/prove_rules.h"
#include "generator/pipeline/step_records.h"
#include "generator/workers/workers.h"

namespace isomer {

// Of the items of step_items.h. `make_judge` is called once per worker; null: nothing is proved.
MakeSteps GeneratorSteps(std::function<Judge()> make_judge);

// What the step "enumerate" finds, by so many threads; a worker has one.
EnumerationResult EnumeratedIn(const Configuration& configuration, uint64_t seed, int threads,
                               TypeOracle* oracle);

}  // namespace isomer

#endif  // ISOMER_GENERATOR_PIPELINE_STEPS_H_
