#include "runtime/evaluation/metrics.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"

namespace isomer {
namespace {

constexpr int64_t kTop = 5;
// From so many classes on the five best are worth a look.
constexpr int64_t kClassesForTop5 = 100;

constexpr std::array<MetricTraits, kAllMetrics.size()> kTraits = {{
    {"loss", "loss"},
    {"perplexity", "perplexity"},
    {"accuracy", "accuracy", /*is_percent=*/true, /*more_is_better=*/true},
    {"top5", "top-5 accuracy", /*is_percent=*/true, /*more_is_better=*/true},
    {"auc", "AUC", /*is_percent=*/false, /*more_is_better=*/true},
}};

// Of equal scores those of lower classes come first, as in numpy.argmax.
int64_t RankOf(absl::Span<const double> line, int64_t label) {
  int64_t before = 0;
  for (int64_t c = 0; c < static_cast<int64_t>(line.size()); ++c) {
    before += line[c] > line[label] || (line[c] == line[label] && c < label);
  }
  return before;
}

// The Mann-Whitney statistic: the mean rank of the positives among all, with the mean of the ranks
// of equal scores.
std::optional<double> AreaUnderCurve(std::vector<std::pair<double, bool>> ranked) {
  std::sort(ranked.begin(), ranked.end());
  double ranks = 0;
  int64_t positives = 0;
  const int64_t count = static_cast<int64_t>(ranked.size());
  for (int64_t begin = 0, end = 0; begin < count; begin = end) {
    int64_t of_these = 0;
    for (end = begin; end < count && ranked[end].first == ranked[begin].first; ++end) {
      of_these += ranked[end].second ? 1 : 0;
    }
    ranks += static_cast<double>(of_these) * static_cast<double>(begin + end + 1) / 2;
    positives += of_these;
  }
  const int64_t negatives = count - positives;
  if (positives == 0 || negatives == 0) return std::nullopt;
  const double p = static_cast<double>(positives), n = static_cast<double>(negatives);
  return (ranks - p * (p + 1) / 2) / (p * n);
}

}  // namespace

const MetricTraits& TraitsOf(MetricKind kind) { return kTraits[static_cast<int>(kind)]; }

std::string MetricNames() {
  return absl::StrJoin(kTraits, ", ", [](std::string* out, const MetricTraits& traits) {
    absl::StrAppend(out, traits.name);
  });
}

absl::StatusOr<MetricKind> ParseMetric(absl::string_view name) {
  for (MetricKind kind : kAllMetrics) {
    if (TraitsOf(kind).name == name) return kind;
  }
  return absl::InvalidArgumentError(
      absl::StrCat("there is no metric '", name, "'; there are ", MetricNames()));
}

std::optional<double> ValueOf(const MetricValues& values, MetricKind kind) {
  for (const auto& [of, value] : values) {
    if (of == kind) return value;
  }
  return std::nullopt;
}

std::string MetricsText(const MetricValues& values, absl::string_view prefix) {
  return absl::StrJoin(values, ", ", [&](std::string* out, const auto& metric) {
    const MetricTraits& traits = TraitsOf(metric.first);
    absl::StrAppend(out, prefix, traits.label, " ");
    if (traits.is_percent) {
      absl::StrAppendFormat(out, "%.2f %%", 100 * metric.second);
    } else {
      absl::StrAppendFormat(out, "%.4f", metric.second);
    }
  });
}

absl::Status CheckMetric(MetricKind kind, bool has_loss, const ScoredOutput* scored) {
  const auto lacks = [&](absl::string_view what) {
    return absl::InvalidArgumentError(
        absl::StrCat("--metrics: ", TraitsOf(kind).name, " needs ", what));
  };
  const bool has_classes = scored != nullptr && scored->kind == ScoreKind::kClasses;
  switch (kind) {
    case MetricKind::kLoss:
      return has_loss ? absl::OkStatus() : lacks("a model with a loss");
    case MetricKind::kPerplexity:
      return has_loss && has_classes ? absl::OkStatus()
                                     : lacks("a cross-entropy of scores and classes");
    case MetricKind::kAccuracy:
      return has_classes || (scored != nullptr && scored->kind == ScoreKind::kLogits)
                 ? absl::OkStatus()
                 : lacks("an output with scores of the classes that the labels are");
    case MetricKind::kTop5:
      return has_classes && scored->classes > kTop
                 ? absl::OkStatus()
                 : lacks("an output with scores of more than five classes");
    case MetricKind::kAuc:
      return scored != nullptr && scored->IsBinary()
                 ? absl::OkStatus()
                 : lacks("an output with one score, or scores of two classes, for each label");
  }
  return absl::OkStatus();
}

std::vector<MetricKind> DefaultMetrics(bool has_loss, const ScoredOutput* scored) {
  std::vector<MetricKind> kinds;
  if (has_loss) kinds.push_back(MetricKind::kLoss);
  if (scored == nullptr) return kinds;
  const bool has_classes = scored->kind == ScoreKind::kClasses;
  const bool has_tokens = has_classes && scored->labels_count > scored->batch;
  if (has_loss && has_tokens) kinds.push_back(MetricKind::kPerplexity);
  if (scored->kind != ScoreKind::kValues) kinds.push_back(MetricKind::kAccuracy);
  if (has_classes && !has_tokens && scored->classes >= kClassesForTop5) {
    kinds.push_back(MetricKind::kTop5);
  }
  const bool is_one_of_two =
      scored->kind == ScoreKind::kLogits || (has_classes && scored->IsBinary());
  if (is_one_of_two) kinds.push_back(MetricKind::kAuc);
  return kinds;
}

ScoreSums::ScoreSums(const ScoredOutput& scored, absl::Span<const MetricKind> kinds)
    : scored_(scored), kinds_(kinds.begin(), kinds.end()) {}

bool ScoreSums::Has(MetricKind kind) const {
  return std::find(kinds_.begin(), kinds_.end(), kind) != kinds_.end();
}

absl::Status ScoreSums::Add(absl::Span<const double> scores, absl::Span<const double> labels) {
  const bool has_classes = scored_.kind == ScoreKind::kClasses;
  const int64_t per_label = has_classes ? scored_.classes : 1;
  const bool ranks = has_classes && (Has(MetricKind::kAccuracy) || Has(MetricKind::kTop5));
  for (size_t i = 0; i < labels.size(); ++i) {
    const absl::Span<const double> line = scores.subspan(i * per_label, per_label);
    const double label = labels[i];
    if (ranks) {
      const int64_t before = RankOf(line, static_cast<int64_t>(label));
      right_ += before == 0;
      among_five_ += before < kTop;
    } else {
      right_ += (line[0] > 0) == (label > 0.5);
    }
    ++judged_;
    if (!Has(MetricKind::kAuc)) continue;
    if (label != 0 && label != 1) {
      return absl::InvalidArgumentError(
          absl::StrCat("--metrics: auc is of labels that are 0 or 1, and one of '", scored_.labels,
                       "' is ", label));
    }
    ranked_.emplace_back(has_classes ? line[1] - line[0] : line[0], label == 1);
  }
  return absl::OkStatus();
}

std::optional<double> ScoreSums::Value(MetricKind kind) const {
  if (judged_ == 0) return std::nullopt;
  const double judged = static_cast<double>(judged_);
  switch (kind) {
    case MetricKind::kAccuracy:
      return static_cast<double>(right_) / judged;
    case MetricKind::kTop5:
      return static_cast<double>(among_five_) / judged;
    case MetricKind::kAuc:
      return AreaUnderCurve(ranked_);
    case MetricKind::kLoss:
    case MetricKind::kPerplexity:
      return std::nullopt;
  }
  return std::nullopt;
}

}  // namespace isomer
