// What is measured of a model on rows that test, besides its loss.
#ifndef ISOMER_RUNTIME_EVALUATION_METRICS_H_
#define ISOMER_RUNTIME_EVALUATION_METRICS_H_

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "runtime/evaluation/scored_output.h"

namespace isomer {

enum class MetricKind {
  kLoss,        // mean over rows
  kPerplexity,  // exp(loss), of a cross-entropy
  kAccuracy,    // the part of the labels where the model's choice is the label
  kTop5,        // the part where the label is among the five classes of the highest scores
  kAuc,         // how often a positive has a higher score than a negative; 1/2 where they are equal
};
inline constexpr std::array<MetricKind, 5> kAllMetrics = {
    MetricKind::kLoss, MetricKind::kPerplexity, MetricKind::kAccuracy, MetricKind::kTop5,
    MetricKind::kAuc};

struct MetricTraits {
  absl::string_view name;   // in flags and files
  absl::string_view label;  // for people
  bool is_percent = false;
  bool more_is_better = false;
};
const MetricTraits& TraitsOf(MetricKind kind);
absl::StatusOr<MetricKind> ParseMetric(absl::string_view name);
// "loss, perplexity, ..".
std::string MetricNames();

using MetricValues = std::vector<std::pair<MetricKind, double>>;
std::optional<double> ValueOf(const MetricValues& values, MetricKind kind);
// "loss 0.1234, accuracy 97.49 %".
std::string MetricsText(const MetricValues& values, absl::string_view prefix);

// Why a model has no such metric; OK: it has. `scored`: null: nothing of it is compared with
// labels.
absl::Status CheckMetric(MetricKind kind, bool has_loss, const ScoredOutput* scored);
// Those that fit what the model's scores are: the loss; perplexity where a row has several labels,
// as those of language models do; accuracy of classes; top-5 of 100 classes or more; AUC where the
// answer is one of two.
std::vector<MetricKind> DefaultMetrics(bool has_loss, const ScoredOutput* scored);

// Of scores and labels, piece by piece.
class ScoreSums {
 public:
  ScoreSums(const ScoredOutput& scored, absl::Span<const MetricKind> kinds);
  // `scores` has as many as `labels`, or as many lines of them as there are classes. Errors: AUC of
  // labels that are not 0 and 1.
  absl::Status Add(absl::Span<const double> scores, absl::Span<const double> labels);
  // Nothing where it is not defined: no labels, or for AUC not both kinds of labels.
  std::optional<double> Value(MetricKind kind) const;

 private:
  bool Has(MetricKind kind) const;

  const ScoredOutput scored_;
  const std::vector<MetricKind> kinds_;
  int64_t judged_ = 0, right_ = 0, among_five_ = 0;
  std::vector<std::pair<double, bool>> ranked_;  // score, is positive; for AUC
};

}  // namespace isomer

#endif  // ISOMER_RUNTIME_EVALUATION_METRICS_H_
