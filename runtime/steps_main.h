#ifndef ISOMER_RUNTIME_STEPS_MAIN_H_
#define ISOMER_RUNTIME_STEPS_MAIN_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "pcg/ir/plan.h"
#include "pcg/support/json.h"
#include "runtime/checkpoints_main.h"
#include "runtime/data/batch_groups.h"
#include "runtime/data/feeder.h"
#include "runtime/device/backend.h"
#include "runtime/device/statistics.h"
#include "runtime/execution/host_values.h"
#include "runtime/execution/job.h"
#include "runtime/execution/learning_rate.h"

namespace isomer {

struct StepOptions {
  int64_t steps = 0, epochs = 0;  // 0 steps: 10, or what the epochs say
  LearningRate learning_rate = 0.1;
  bool tests_at_end = false;  // when the last epoch has not come to its end, too
  bool check = false;         // the first step with the unoptimised model
  int64_t trace_steps = 0;    // how many of the last are traced
  int64_t first_step = 0;     // steps that a checkpoint has
  int64_t log_every = 0;      // a line after so many; 0: none
  bool tests_averages = false;
  bool speaks = true;  // Processes all run the steps; one tells of them.
};

// What isomer-run does between starting a job and writing its results.
class StepRunner {
 public:
  // `checkpoints`: null: there are none. REQUIRES: all arguments outlive the runner.
  StepRunner(const Plan& plan, const StepOptions& options, const Feeder& feeder,
             const BatchGroups& groups, Backend* backend, Job* job, Checkpoints* checkpoints)
      : plan_(plan),
        options_(options),
        feeder_(feeder),
        backend_(backend),
        job_(*job),
        checkpoints_(checkpoints),
        groups_(groups) {}

  absl::Status Run(const HostValues& weights, Json* summary);
  // What the check found; true without it.
  bool agrees() const { return agrees_; }
  // By which signal the run ended before its last step; null: it did not.
  const char* stopped_by() const { return stopped_by_; }
  // A Chrome trace of the last steps; "" without.
  const std::string& trace() const { return trace_; }

 private:
  // The rates of so many steps from the `first` on.
  std::vector<double> RatesOf(int64_t first, int64_t count) const;
  // The next step, whose gradients are those of several batches. Adds the mean of their losses.
  absl::Status AccumulatedStep(int64_t step);
  absl::Status NoteTimes(int64_t count, double host_us);
  // `inputs`: those of the step; null, if there were several.
  absl::Status NoteLoss(int64_t step, double loss, const HostValues* inputs);
  // Those between two flushes: one, of most plans. `first` is the number of the first.
  absl::Status Steps(int64_t first, const std::vector<HostValues>& inputs);
  absl::StatusOr<int64_t> NumSteps() const;
  void TellGradientNorm(int64_t step);
  // Epochs that ended in the steps from `from` to before `to`.
  absl::Status EndEpochs(int64_t from, int64_t to, Json* summary);
  absl::Status EndEpoch(int64_t epoch, Json* summary);
  void Log(int64_t done);
  // Of the rows that test: ", test loss 0.1, test accuracy 97.8 %"; "" without.
  absl::StatusOr<std::string> TestText(Json* summary);
  absl::Status Summarise(Json* summary);

  const Plan& plan_;
  StepOptions options_;
  const Feeder& feeder_;
  Backend* backend_;
  Job& job_;
  Checkpoints* const checkpoints_;
  BatchGroups groups_;
  const char* stopped_by_ = nullptr;
  Samples step_us_, host_us_;
  double last_step_us_ = 0;
  std::vector<double> losses_, gradient_norms_;
  std::string trace_;
  bool agrees_ = true;
};

}  // namespace isomer

#endif  // ISOMER_RUNTIME_STEPS_MAIN_H_
