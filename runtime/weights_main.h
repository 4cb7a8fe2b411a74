// The flags of isomer-run that say where weights come from, --weights, and where they go to, --out
// (docs/training.md).
#ifndef ISOMER_RUNTIME_WEIGHTS_MAIN_H_
#define ISOMER_RUNTIME_WEIGHTS_MAIN_H_

#include <chrono>
#include <string>
#include <vector>

#include "absl/flags/declare.h"
#include "absl/status/status.h"
#include "pcg/ir/plan.h"
#include "pcg/support/output_files.h"
#include "runtime/communication/process_communicator.h"
#include "runtime/execution/job.h"
#include "runtime/execution/leaf_values.h"

ABSL_DECLARE_FLAG(std::string, out);

namespace isomer {

// Gives the model the weights that --weights names, by name. Errors name the file, the tensor and
// the dim: what is missing, what is too much, what has another shape. `processes`: null, or those
// that all do this; `speaks`: this one says which weights were not set. `read` gets the files.
absl::Status LoadWeights(ProcessCommunicator* processes, bool speaks, Model* model,
                         std::vector<NamedFile>* read);

// What --out cannot be is said before there is anything to save.
absl::Status CheckOut(const Model& model);
// Writes the model with the weights that the job has to --out, or them alone, by the name's ending.
// All processes call it. `initial`: of what was not trained; `writes`: this one does;
// `stall_timeout`: for a disk that does not answer (disk_progress.h).
absl::Status SaveTrainedModel(const Model& model, const LeafValues& initial, bool writes,
                              std::chrono::milliseconds stall_timeout, Job* job);

}  // namespace isomer

#endif  // ISOMER_RUNTIME_WEIGHTS_MAIN_H_
