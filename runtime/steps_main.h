#ifndef ISOMER_RUNTIME_STEPS_MAIN_H_
#define ISOMER_RUNTIME_STEPS_MAIN_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "pcg/ir/plan.h"
#include "pcg/support/json.h"
#include "runtime/checkpoints_main.h"
#include "runtime/data/batch_groups.h"
#include "runtime/data/feeder.h"
#include "runtime/device/backend.h"
#include "runtime/device/statistics.h"
#include "runtime/evaluation/evaluate.h"
#include "runtime/evaluation_main.h"
#include "runtime/execution/host_values.h"
#include "runtime/execution/job.h"
#include "runtime/execution/learning_rate.h"
#include "runtime/logs_main.h"

namespace isomer {

struct StepOptions {
  int64_t steps = 0, epochs = 0;  // 0 steps: 10, or what the epochs say
  LearningRate learning_rate = 0.1;
  bool check = false;           // the first step with the unoptimised model
  int64_t trace_steps = 0;      // how many of the last are traced
  int64_t first_step = 0;       // steps that a checkpoint has
  bool tests_averages = false;  // in place of the weights
  bool only_times = false;      // data and rate are nobody's choice: the loss may go where it likes
  bool speaks = true;           // Processes all run the steps; one tells of them.
};

// What isomer-run does between starting a job and writing its results.
class StepRunner {
 public:
  // `checkpoints`: null: there are none. `keep_best`: called on all processes when a test was the
  // best so far; null: nothing is. REQUIRES: all arguments outlive the runner.
  StepRunner(const Plan& plan, const StepOptions& options, const Feeder& feeder,
             const BatchGroups& groups, Backend* backend, Job* job, Checkpoints* checkpoints,
             Tests* tests, TrainingLogs* logs, std::function<absl::Status()> keep_best)
      : plan_(plan),
        options_(options),
        feeder_(feeder),
        backend_(backend),
        job_(*job),
        checkpoints_(checkpoints),
        tests_(*tests),
        logs_(*logs),
        keep_best_(std::move(keep_best)),
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
  // Lines of the epochs that ended in the steps from `from` to before `to`, each with `test`, what
  // was tested behind them; whether there was any.
  bool EndEpochs(int64_t from, int64_t to, absl::string_view test);
  // Tests, where that is due behind the steps from `from` to before `to`, and tells of it.
  absl::StatusOr<std::optional<Evaluation>> TestAfter(int64_t from, int64_t to, int64_t steps);
  absl::Status Log(int64_t done, const std::optional<Evaluation>& test);
  // Whether what a checkpoint had found is reason to stop at once.
  bool HasStopped();
  absl::Status Summarise(Json* summary);

  const Plan& plan_;
  StepOptions options_;
  const Feeder& feeder_;
  Backend* backend_;
  Job& job_;
  Checkpoints* const checkpoints_;
  Tests& tests_;
  TrainingLogs& logs_;
  const std::function<absl::Status()> keep_best_;
  double test_us_ = 0;  // of the last test
  BatchGroups groups_;
  const char* stopped_by_ = nullptr;
  Samples step_us_, host_us_;
  std::vector<double> losses_, gradient_norms_;
  std::string trace_;
  bool agrees_ = true;
  bool told_not_finite_ = false;  // of a run that only times
};

}  // namespace isomer

#endif  // ISOMER_RUNTIME_STEPS_MAIN_H_
