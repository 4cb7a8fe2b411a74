// The flags of isomer-run that say what is told of a training while it goes on
// (docs/training.md).
#ifndef ISOMER_RUNTIME_LOGS_MAIN_H_
#define ISOMER_RUNTIME_LOGS_MAIN_H_

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "pcg/ir/plan.h"
#include "runtime/data/feeder.h"
#include "runtime/evaluation/evaluate.h"
#include "runtime/logging/csv_log.h"
#include "runtime/logging/event_file.h"
#include "runtime/logging/step_record.h"

namespace isomer {

// Lines, a CSV file and TensorBoard's events of a training. Of processes one has all of it.
class TrainingLogs {
 public:
  // Refuses what makes no sense, before anything is done.
  static absl::Status CheckFlags();
  // `speaks`: this process tells; `first_step`: of a training that goes on; `metrics`: that tests
  // find. Opens the files. REQUIRES: plan and feeder outlive it.
  static absl::StatusOr<std::unique_ptr<TrainingLogs>> FromFlags(
      const Plan& plan, const Feeder& feeder, int64_t batches,
      const std::vector<MetricKind>& metrics, bool speaks, std::optional<int64_t> first_step);

  // What a step found, as far as the runner knows it.
  struct Step {
    int64_t done = 0;     // steps so far
    int64_t at_once = 1;  // of which so many just now
    std::optional<double> loss = {}, learning_rate = {}, gradient_norm = {};
    double checkpoint_wait_us = 0;  // since the run began
    std::optional<double> device_bytes = {};
    const Evaluation* test = nullptr;  // after this step
    double test_us = 0;                // that it took
  };
  // Tells of it, if it is time, or if it has a test.
  absl::Status AfterStep(const Step& step);

 private:
  using Clock = std::chrono::steady_clock;
  struct Files {
    std::unique_ptr<CsvLog> csv;
    std::unique_ptr<EventFile> events;
    bool any() const { return csv != nullptr || events != nullptr; }
  };

  TrainingLogs(const Plan& plan, const Feeder& feeder, const std::vector<MetricKind>& metrics,
               bool speaks);
  absl::Status OpenFiles(std::optional<int64_t> first_step);
  StepRecord RecordOf(const Step& step);
  absl::Status AddToFiles(const StepRecord& record, bool is_logged);

  const Plan& plan_;
  const Feeder& feeder_;
  const std::vector<MetricKind> metrics_;
  const bool speaks_;
  const int64_t lines_every_, files_every_;  // 0: none
  // Of a step of the model.
  double flops_ = 0, samples_ = 0;
  std::optional<int64_t> tokens_;
  Files files_;
  // At the last record.
  Clock::time_point time_ = Clock::now();
  int64_t steps_since_ = 0;
  double tests_us_ = 0, data_wait_us_ = 0, checkpoint_wait_us_ = 0;
};

}  // namespace isomer

#endif  // ISOMER_RUNTIME_LOGS_MAIN_H_
