#ifndef ISOMER_RUNTIME_EVALUATION_EVALUATE_H_
#define ISOMER_RUNTIME_EVALUATION_EVALUATE_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime/data/feeder.h"
#include "runtime/evaluation/metrics.h"
#include "runtime/evaluation/scored_output.h"
#include "runtime/execution/job.h"

namespace isomer {

struct EvaluationOptions {
  std::string loss;                         // the output that it is; "": none
  bool loss_is_mean = false;                // LossIsMeanOverRows
  std::optional<ScoredOutput> scored = {};  // FindScoredOutput
  std::vector<MetricKind> metrics = {};     // CheckMetric holds of each
  int64_t most_batches = 0;                 // the first so many; 0: all
};

struct Evaluation {
  int64_t rows = 0;           // that were looked at
  int64_t rows_of_loss = 0;   // that the loss is the mean of
  MetricValues metrics = {};  // those that are defined
};

// Runs the rows that test, in the model's evaluation form (Job::Evaluate), on all devices.
// Processes make the same calls, and all get the same. Every row counts once: the last batch is
// filled up with copies of its first row, whose part is taken out of its loss again. Of a loss that
// is no mean over rows whole batches count alone.
absl::StatusOr<Evaluation> Evaluate(const EvaluationOptions& options, const Feeder& feeder,
                                    Job* job);

}  // namespace isomer

#endif  // ISOMER_RUNTIME_EVALUATION_EVALUATE_H_
