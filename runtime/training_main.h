// The flags of isomer-run that say how weights are trained: rates, the optimizer's settings,
// clipping, accumulation, averages (docs/training.md).
#ifndef ISOMER_RUNTIME_TRAINING_MAIN_H_
#define ISOMER_RUNTIME_TRAINING_MAIN_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "pcg/ir/plan.h"
#include "pcg/schedule/schedule.h"
#include "runtime/execution/job.h"
#include "runtime/execution/learning_rate.h"

namespace isomer {

// What is not for inference; `why` as RefuseFlags has it.
absl::Status RefuseTrainingFlags(absl::string_view why);
// "constant", .., "FILE".
std::vector<std::string> ScheduleWords();
absl::StatusOr<LearningRate> LearningRateFromFlags();
// --late_updates.
absl::Status SetWhenUpdated(Plan* plan);
// --average_decay: whether the plan's schedule keeps averages; a note says so where it did not
// count them.
absl::Status SetAverages(bool speaks, Plan* plan);
// Whether tests and what is written are of the averages.
bool UsesAverage();
// --accumulate: batches of a step.
absl::StatusOr<int64_t> AccumulateFromFlags();
// The settings of the schedule's optimizer, which weights decay, and what becomes of gradients.
// Refuses what the optimizer has not, and what the schedule cannot.
absl::Status SetTraining(const Plan& plan, const Schedule& schedule, int64_t accumulate,
                         bool speaks, JobOptions* options);

}  // namespace isomer

#endif  // ISOMER_RUNTIME_TRAINING_MAIN_H_
