// isomer-run --feed and --fetch: any tensors of a model, with what they need and no more.
#ifndef ISOMER_RUNTIME_FETCH_MAIN_H_
#define ISOMER_RUNTIME_FETCH_MAIN_H_

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "pcg/ir/plan.h"
#include "runtime/communication/process_communicator.h"
#include "runtime/device/backend.h"
#include "runtime/execution/queue_runner.h"

namespace isomer {

// Whether --feed or --fetch was given.
bool Fetches();

// Runs what the fetched tensors of a plan or a model need, once, forward, with weights as they are
// in the file: a model as the file says, unless --mode=training asks for the form that is
// evaluated; a plan on its devices. What is not fed is random. Prints tensors, or writes them.
// `is_plan`: it is read from a plan, and no model made into one. `processes`: null, or those that
// all do this. The error says what is refused: a name that there is not, an array that does not
// fit.
absl::Status RunFetch(Plan plan, bool is_plan, const Execution& execution, Backend* backend,
                      ProcessCommunicator* processes);
// Refuses flags that it has no use for.
absl::Status CheckFlagsOfFetch();

}  // namespace isomer

#endif  // ISOMER_RUNTIME_FETCH_MAIN_H_
