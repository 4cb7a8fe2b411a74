// isomer-run --generate: the tokens that follow a prompt, step by step.
#ifndef ISOMER_RUNTIME_GENERATE_MAIN_H_
#define ISOMER_RUNTIME_GENERATE_MAIN_H_

#include <optional>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "pcg/ir/plan.h"
#include "runtime/communication/process_communicator.h"
#include "runtime/device/backend.h"
#include "runtime/execution/queue_runner.h"

namespace isomer {

// Whether --generate was given.
bool Generates();
// Refuses flags that it has no use for, or a negative number.
absl::Status CheckFlagsOfGenerate();

// Runs the steps of a plan, or of a model as one, that has states (pcg/ir/states.h): of each sample
// the likeliest next token, as often as --generate says. States begin with zeros, or with what
// `prefill`, of one step for all of --prompt, leaves. Prints the tokens and how long they took.
// `processes`: null, or those that all do this. The error names the input that nothing is known of,
// or what of the prompt does not fit.
absl::Status RunGenerate(Plan plan, std::optional<Plan> prefill, const Execution& execution,
                         Backend* backend, ProcessCommunicator* processes);

}  // namespace isomer

#endif  // ISOMER_RUNTIME_GENERATE_MAIN_H_
