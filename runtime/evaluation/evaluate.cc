#include "runtime/evaluation/evaluate.h"

#include <algorithm>
#include <cmath>

#include "absl/types/span.h"
#include "pcg/support/status_macros.h"

namespace isomer {
namespace {

absl::StatusOr<double> LossOf(const std::string& name, Job* job) {
  ISOMER_ASSIGN_OR_RETURN(const Array<double> loss, job->Output(name));
  return loss.data[0];
}

// The sum of the losses of the rows of a batch of which the last ones are copies of the first.
absl::StatusOr<double> LossOfRows(const EvaluationOptions& options, const Feeder& feeder,
                                  int64_t first, int64_t rows, double loss, Job* job) {
  const double batch = static_cast<double>(feeder.batch());
  if (rows == feeder.batch()) return loss * batch;
  ISOMER_ASSIGN_OR_RETURN(const HostValues copies, feeder.TestBatch(first, 1));
  ISOMER_RETURN_IF_ERROR(job->Evaluate(copies));
  ISOMER_ASSIGN_OR_RETURN(const double of_first, LossOf(options.loss, job));
  return loss * batch - of_first * (batch - static_cast<double>(rows));
}

}  // namespace

absl::StatusOr<Evaluation> Evaluate(const EvaluationOptions& options, const Feeder& feeder,
                                    Job* job) {
  Evaluation result;
  const int64_t batch = feeder.batch();
  int64_t rows = feeder.test_rows();
  if (options.most_batches > 0) rows = std::min(rows, options.most_batches * batch);
  std::optional<ScoreSums> scores;
  if (options.scored.has_value()) scores.emplace(*options.scored, options.metrics);
  const bool has_loss = !options.loss.empty();
  double losses = 0;
  for (int64_t first = 0; first < rows; first += batch) {
    const int64_t count = std::min(batch, rows - first);
    ISOMER_ASSIGN_OR_RETURN(const HostValues inputs, feeder.TestBatch(first, count));
    ISOMER_RETURN_IF_ERROR(job->Evaluate(inputs));
    if (scores.has_value()) {
      const ScoredOutput& of = *options.scored;
      ISOMER_ASSIGN_OR_RETURN(const Array<double> found, job->Output(of.output));
      const int64_t labels = count * (of.labels_count / batch);
      ISOMER_RETURN_IF_ERROR(
          scores->Add(absl::MakeConstSpan(found.data.data(), labels * of.classes),
                      absl::MakeConstSpan(inputs.at(of.labels).data.data(), labels)));
    }
    result.rows += count;
    if (!has_loss || (count < batch && !options.loss_is_mean)) continue;
    ISOMER_ASSIGN_OR_RETURN(const double loss, LossOf(options.loss, job));
    ISOMER_ASSIGN_OR_RETURN(const double of_rows,
                            LossOfRows(options, feeder, first, count, loss, job));
    losses += of_rows;
    result.rows_of_loss += count;
  }
  const double mean = losses / static_cast<double>(std::max<int64_t>(1, result.rows_of_loss));
  for (MetricKind kind : options.metrics) {
    const bool is_of_loss = kind == MetricKind::kLoss || kind == MetricKind::kPerplexity;
    if (is_of_loss && result.rows_of_loss > 0) {
      result.metrics.emplace_back(kind, kind == MetricKind::kLoss ? mean : std::exp(mean));
    } else if (const auto value = scores.has_value() ? scores->Value(kind) : std::nullopt;
               value.has_value()) {
      result.metrics.emplace_back(kind, *value);
    }
  }
  return result;
}

}  // namespace isomer
