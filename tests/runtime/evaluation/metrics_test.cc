// Metrics beside their definitions, written again.
#include "runtime/evaluation/metrics.h"

#include <cmath>
#include <random>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace isomer {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

ScoredOutput OfClasses(int64_t classes, int64_t labels = 8, int64_t batch = 8) {
  return {.output = "logits",
          .labels = "labels",
          .kind = ScoreKind::kClasses,
          .classes = classes,
          .labels_count = labels,
          .batch = batch};
}

// How often a positive has a higher score than a negative, of all pairs.
double AucOfAllPairs(const std::vector<double>& scores, const std::vector<double>& labels) {
  double above = 0, pairs = 0;
  for (size_t p = 0; p < scores.size(); ++p) {
    for (size_t n = 0; n < scores.size(); ++n) {
      if (labels[p] != 1 || labels[n] != 0) continue;
      above += scores[p] > scores[n] ? 1 : scores[p] == scores[n] ? 0.5 : 0;
      ++pairs;
    }
  }
  return above / pairs;
}

TEST(Metrics, OfRandomClassesAreWhatTheirDefinitionsSay) {
  std::mt19937_64 random(7);
  for (int64_t classes : {2, 6, 20}) {
    const ScoredOutput scored = OfClasses(classes);
    ScoreSums sums(scored, {MetricKind::kAccuracy, MetricKind::kTop5});
    double right = 0, among_five = 0;
    const int rows = 200;
    for (int row = 0; row < rows; ++row) {
      std::vector<double> line;
      // Few values, so that some are equal.
      for (int64_t c = 0; c < classes; ++c) line.push_back(static_cast<double>(random() % 12));
      const int64_t label = static_cast<int64_t>(random() % classes);
      ASSERT_EQ(sums.Add(line, {static_cast<double>(label)}), absl::OkStatus());
      int64_t before = 0;
      for (int64_t c = 0; c < classes; ++c) {
        before += line[c] > line[label] || (line[c] == line[label] && c < label);
      }
      right += before == 0;
      among_five += before < 5;
    }
    EXPECT_DOUBLE_EQ(*sums.Value(MetricKind::kAccuracy), right / rows) << classes;
    EXPECT_DOUBLE_EQ(*sums.Value(MetricKind::kTop5), among_five / rows) << classes;
  }
}

TEST(Metrics, AucIsTheShareOfPairsInOrder) {
  std::mt19937_64 random(3);
  for (int values : {2, 5, 1000}) {
    std::vector<double> scores, labels, lines;
    for (int row = 0; row < 150; ++row) {
      scores.push_back(static_cast<double>(random() % values));
      labels.push_back(static_cast<double>(random() % 3 == 0));
      lines.insert(lines.end(), {1.0, 1.0 + scores.back()});
    }
    const double expected = AucOfAllPairs(scores, labels);
    ScoreSums of_logits({.labels = "target", .kind = ScoreKind::kLogits}, {MetricKind::kAuc});
    ASSERT_EQ(of_logits.Add(scores, labels), absl::OkStatus());
    EXPECT_NEAR(*of_logits.Value(MetricKind::kAuc), expected, 1e-12) << values;
    ScoreSums of_two(OfClasses(2), {MetricKind::kAuc});
    ASSERT_EQ(of_two.Add(lines, labels), absl::OkStatus());
    EXPECT_NEAR(*of_two.Value(MetricKind::kAuc), expected, 1e-12) << values;
  }
}

TEST(Metrics, AucOfOneKindOfLabelsIsNotDefined) {
  ScoreSums sums({.labels = "target", .kind = ScoreKind::kLogits}, {MetricKind::kAuc});
  ASSERT_EQ(sums.Add({1, 2}, {1, 1}), absl::OkStatus());
  EXPECT_FALSE(sums.Value(MetricKind::kAuc).has_value());
  EXPECT_THAT(std::string(sums.Add({1}, {0.25}).message()), HasSubstr("'target' is 0.25"));
}

TEST(Metrics, ALogitAboveZeroSaysOne) {
  ScoreSums sums({.labels = "target", .kind = ScoreKind::kLogits}, {MetricKind::kAccuracy});
  ASSERT_EQ(sums.Add({-1, 0, 0.5, 3}, {0, 1, 1, 0}), absl::OkStatus());
  EXPECT_DOUBLE_EQ(*sums.Value(MetricKind::kAccuracy), 0.5);
}

TEST(Metrics, WhatIsMeasuredFollowsFromOutputsAndLabels) {
  using enum MetricKind;
  const auto of = [](const ScoredOutput& scored) { return DefaultMetrics(true, &scored); };
  EXPECT_THAT(DefaultMetrics(true, nullptr), ElementsAre(kLoss));
  EXPECT_THAT(DefaultMetrics(false, nullptr), testing::IsEmpty());
  EXPECT_THAT(of(OfClasses(10)), ElementsAre(kLoss, kAccuracy));
  EXPECT_THAT(of(OfClasses(1000)), ElementsAre(kLoss, kAccuracy, kTop5));
  EXPECT_THAT(of(OfClasses(2)), ElementsAre(kLoss, kAccuracy, kAuc));
  // Of tokens.
  EXPECT_THAT(of(OfClasses(256, 64, 4)), ElementsAre(kLoss, kPerplexity, kAccuracy));
  EXPECT_THAT(of({.kind = ScoreKind::kLogits}), ElementsAre(kLoss, kAccuracy, kAuc));
  EXPECT_THAT(of({.kind = ScoreKind::kValues}), ElementsAre(kLoss));
}

TEST(Metrics, WhatAModelHasNotIsRefused) {
  const ScoredOutput few = OfClasses(4), values = {.kind = ScoreKind::kValues};
  const auto error = [](MetricKind kind, bool has_loss, const ScoredOutput* scored) {
    return std::string(CheckMetric(kind, has_loss, scored).message());
  };
  EXPECT_THAT(error(MetricKind::kTop5, true, &few), HasSubstr("more than five classes"));
  EXPECT_THAT(error(MetricKind::kAuc, true, &few), HasSubstr("scores of two classes"));
  EXPECT_THAT(error(MetricKind::kAccuracy, true, &values), HasSubstr("scores of the classes"));
  EXPECT_THAT(error(MetricKind::kPerplexity, true, &values), HasSubstr("cross-entropy"));
  EXPECT_THAT(error(MetricKind::kLoss, false, &few), HasSubstr("a model with a loss"));
  EXPECT_EQ(error(MetricKind::kAuc, true, &values), "");
  EXPECT_THAT(std::string(ParseMetric("acuracy").status().message()),
              HasSubstr("there are loss, perplexity, accuracy, top5, auc"));
}

TEST(Metrics, ForPeople) {
  EXPECT_EQ(MetricsText({{MetricKind::kLoss, 0.5}, {MetricKind::kAccuracy, 0.97494}}, "test "),
            "test loss 0.5000, test accuracy 97.49 %");
}

}  // namespace
}  // namespace isomer
