// The flags of isomer-run that say when a model is tested, by which metrics, and when that is
// reason to stop (docs/training.md).
#ifndef ISOMER_RUNTIME_EVALUATION_MAIN_H_
#define ISOMER_RUNTIME_EVALUATION_MAIN_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "pcg/ir/plan.h"
#include "pcg/support/json.h"
#include "runtime/data/batch_groups.h"
#include "runtime/data/feeder.h"
#include "runtime/evaluation/early_stopping.h"
#include "runtime/evaluation/evaluate.h"
#include "runtime/execution/job.h"

namespace isomer {

// Refuses those that are not for what is run; `why` as RefuseFlags has it.
absl::Status RefuseEvaluationFlags(absl::string_view why);

// The tests of one training.
class Tests {
 public:
  // Refuses what does not go together, metrics that the model has not, and a test without rows.
  // REQUIRES: plan and feeder outlive it.
  static absl::StatusOr<Tests> FromFlags(const Plan& plan, const Feeder& feeder,
                                         const BatchGroups& groups);

  const std::vector<MetricKind>& metrics() const { return options_.metrics; }
  // Whether there is anything to test, and by what.
  bool any() const { return feeder_->test_rows() > 0 && !options_.metrics.empty(); }
  // For people: that some batch norms, of a plan's graph, are tested in another way than one
  // expects. "" for nothing.
  std::string Note(const Graph& graph, const Model& model) const;

  // Whether the steps from `from` to before `to`, of `steps`, end where a test is due.
  bool IsDue(int64_t from, int64_t to, int64_t steps) const;
  // Whether tests are said to be of steps, and not of epochs.
  bool CountsSteps() const { return every_ > 0; }

  // Tests after `step` steps; `is_best`: the monitored metric is better than ever.
  absl::StatusOr<Evaluation> Run(int64_t step, Job* job, bool* is_best);
  // "test loss 0.1, test accuracy 97.8 %", and of how many rows where that is not clear; "" for
  // nothing.
  std::string Text(const Evaluation& evaluation) const;

  // --early_stopping.
  bool StopsEarly() const { return patience_ > 0; }
  bool ShouldStop() const { return stopping_.ShouldStop(); }
  const EarlyStopping::State& stopping() const { return stopping_.state(); }
  // The name of the metric that says what is better.
  std::string monitor() const { return std::string(TraitsOf(monitor_).name); }
  // What a training that goes on had found.
  void SetStopping(const EarlyStopping::State& state) { stopping_.set_state(state); }
  // "the loss was best after step 30 (0.1234)".
  std::string BestText() const;

  // Of all tests of the run.
  void Summarise(Json* summary) const;

 private:
  Tests(const Feeder& feeder, const BatchGroups& groups, EvaluationOptions options, int64_t every,
        bool at_end, MetricKind monitor, int64_t patience)
      : feeder_(&feeder),
        groups_(groups),
        options_(std::move(options)),
        every_(every),
        at_end_(at_end),
        monitor_(monitor),
        patience_(patience),
        stopping_(patience, TraitsOf(monitor).more_is_better) {}

  const Feeder* feeder_;
  BatchGroups groups_;
  EvaluationOptions options_;
  int64_t every_;  // steps; 0: epochs
  bool at_end_;    // when the last epoch has not come to its end, too
  MetricKind monitor_;
  int64_t patience_;
  EarlyStopping stopping_;
  struct Done {
    int64_t step;
    Evaluation evaluation;
  };
  std::vector<Done> done_;
};

}  // namespace isomer

#endif  // ISOMER_RUNTIME_EVALUATION_MAIN_H_
