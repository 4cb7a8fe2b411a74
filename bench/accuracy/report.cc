#include "bench/accuracy/report.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace isomer {
namespace {

constexpr double kSameTime = 0.02;
constexpr double kGoal = 0.05;

std::string ModelOf(const PlanComparison& pair) {
  return absl::StrCat(pair.model, " ", pair.communicator);
}

void CompareOrders(const std::vector<const PlanComparison*>& plans, AccuracySummary* summary) {
  for (size_t i = 0; i < plans.size(); ++i) {
    for (size_t j = 0; j < i; ++j) {
      const double measured = std::log(plans[i]->measured_us / plans[j]->measured_us);
      const double predicted = std::log(plans[i]->predicted_us / plans[j]->predicted_us);
      if (std::abs(measured) < kSameTime) continue;
      ++summary->ordered_pairs;
      summary->pairs_in_order += measured * predicted > 0;
    }
  }
}

std::string Percent(double part) { return absl::StrFormat("%+.1f %%", 100 * part); }

// "compute_gradient conv2d 8.20 ms, predicted 9.10".
std::string Difference(const KindTimes& kind) {
  return absl::StrFormat("%s takes %.2f ms, predicted %.2f", kind.kind, kind.measured_us / 1000,
                         kind.predicted_us / 1000);
}

struct Axis {
  double low, high;  // of the values, as powers of ten
  double from, to;   // in the picture
  double At(double us) const { return from + (std::log10(us) - low) / (high - low) * (to - from); }
};

}  // namespace

AccuracySummary Summarise(const std::vector<PlanComparison>& pairs) {
  AccuracySummary summary;
  std::vector<double> time_errors, memory_errors, predicted, measured, correlations;
  std::map<std::string, std::vector<const PlanComparison*>> models;
  for (const PlanComparison& pair : pairs) {
    time_errors.push_back(std::abs(pair.TimeError()));
    memory_errors.push_back(std::abs(pair.MemoryError()));
    predicted.push_back(pair.predicted_us);
    measured.push_back(pair.measured_us);
    models[ModelOf(pair)].push_back(&pair);
    summary.within_5_percent += time_errors.back() <= kGoal;
    summary.memory_within_5_percent += memory_errors.back() <= kGoal;
  }
  for (const auto& [name, plans] : models) {
    std::vector<double> p, m;
    for (const PlanComparison* plan : plans) {
      p.push_back(plan->predicted_us);
      m.push_back(plan->measured_us);
    }
    correlations.push_back(RankCorrelation(p, m));
    CompareOrders(plans, &summary);
  }
  const double count = static_cast<double>(std::max<size_t>(pairs.size(), 1));
  summary.within_5_percent /= count;
  summary.memory_within_5_percent /= count;
  summary.pairs_in_order /= std::max(summary.ordered_pairs, 1);
  summary.median_time_error = MedianOf(time_errors);
  summary.median_memory_error = MedianOf(memory_errors);
  summary.rank_correlation = RankCorrelation(predicted, measured);
  summary.median_correlation_in_model = MedianOf(correlations);
  return summary;
}

std::string AccuracyPage(const std::vector<PlanComparison>& pairs, const AccuracySummary& summary) {
  std::string page = absl::StrFormat(
      "# Predicted against measured\n\n"
      "Made by `bench/accuracy.sh`. Times in ms, memory in MB of the device that needs most.\n\n"
      "| | |\n|---|--:|\n"
      "| pairs | %d |\n| median error of step times | %.1f %% |\n| within 5 %% | %.0f %% |\n"
      "| rank correlation, all pairs | %.3f |\n"
      "| rank correlation of the plans of a model, median | %.3f |\n"
      "| pairs of plans of a model in the right order | %.0f %% of %d |\n"
      "| median error of memory | %.1f %% |\n| memory within 5 %% | %.0f %% |\n\n",
      pairs.size(), 100 * summary.median_time_error, 100 * summary.within_5_percent,
      summary.rank_correlation, summary.median_correlation_in_model, 100 * summary.pairs_in_order,
      summary.ordered_pairs, 100 * summary.median_memory_error,
      100 * summary.memory_within_5_percent);
  absl::StrAppend(&page,
                  "| model | plan | devices | | measured | of runs | predicted | error | memory "
                  "measured | predicted | error |\n"
                  "|---|---|--:|---|--:|--:|--:|--:|--:|--:|--:|\n");
  for (const PlanComparison& pair : pairs) {
    absl::StrAppendFormat(
        &page, "| %s | %s | %d | %s | %.2f | %.2f-%.2f | %.2f | %s | %.2f | %.2f | %s |\n",
        pair.model, pair.plan, pair.devices, pair.communicator, pair.measured_us / 1000,
        pair.lowest_us / 1000, pair.highest_us / 1000, pair.predicted_us / 1000,
        Percent(pair.TimeError()), static_cast<double>(pair.measured_bytes) / 1e6,
        static_cast<double>(pair.predicted_bytes) / 1e6, Percent(pair.MemoryError()));
  }
  std::vector<const PlanComparison*> worst;
  for (const PlanComparison& pair : pairs) worst.push_back(&pair);
  std::sort(worst.begin(), worst.end(), [](const PlanComparison* a, const PlanComparison* b) {
    return std::abs(std::log1p(a->TimeError())) > std::abs(std::log1p(b->TimeError()));
  });
  absl::StrAppend(&page, "\nThe worst three, and the tasks of a device that differ most:\n\n");
  for (size_t w = 0; w < std::min<size_t>(worst.size(), 3); ++w) {
    const PlanComparison& pair = *worst[w];
    absl::StrAppendFormat(&page, "- %s, %s, %s (%s): ", pair.model, pair.plan, pair.communicator,
                          Percent(pair.TimeError()));
    for (size_t k = 0; k < std::min<size_t>(pair.kinds.size(), 3); ++k) {
      absl::StrAppend(&page, k == 0 ? "" : "; ", Difference(pair.kinds[k]));
    }
    absl::StrAppend(&page, ".\n");
  }
  return page;
}

Json AccuracyJson(const std::vector<PlanComparison>& pairs, const AccuracySummary& summary) {
  Json json;
  json["median_time_error"] = summary.median_time_error;
  json["within_5_percent"] = summary.within_5_percent;
  json["rank_correlation"] = summary.rank_correlation;
  json["median_correlation_in_model"] = summary.median_correlation_in_model;
  json["pairs_in_order"] = summary.pairs_in_order;
  json["ordered_pairs"] = summary.ordered_pairs;
  json["median_memory_error"] = summary.median_memory_error;
  json["memory_within_5_percent"] = summary.memory_within_5_percent;
  Json& list = json["pairs"] = Json::EmptyArray();
  for (const PlanComparison& pair : pairs) {
    Json entry;
    entry["model"] = pair.model;
    entry["plan"] = pair.plan;
    entry["communicator"] = pair.communicator;
    entry["devices"] = pair.devices;
    entry["measured_us"] = pair.measured_us;
    entry["lowest_us"] = pair.lowest_us;
    entry["highest_us"] = pair.highest_us;
    entry["predicted_us"] = pair.predicted_us;
    entry["measured_bytes"] = pair.measured_bytes;
    entry["predicted_bytes"] = pair.predicted_bytes;
    for (const KindTimes& kind : pair.kinds) {
      entry["kinds"][kind.kind]["measured_us"] = kind.measured_us;
      entry["kinds"][kind.kind]["least_us"] = kind.least_us;
      entry["kinds"][kind.kind]["predicted_us"] = kind.predicted_us;
    }
    list.Append(std::move(entry));
  }
  return json;
}

std::string TasksCsv(const std::vector<PlanComparison>& pairs) {
  std::string csv = "model;plan;communicator;task;predicted_us;measured_us;least_us\n";
  for (const PlanComparison& pair : pairs) {
    for (const TaskComparison& task : pair.tasks) {
      absl::StrAppendFormat(&csv, "%s;%s;%s;%s;%.2f;%.2f;%.2f\n", pair.model, pair.plan,
                            pair.communicator, task.task, task.predicted_us, task.measured_us,
                            task.least_us);
    }
  }
  return csv;
}

std::string AccuracySvg(const std::vector<PlanComparison>& pairs) {
  constexpr int kSize = 480, kLeft = 60, kTop = 20;
  double least = 1e300, most = 0;
  for (const PlanComparison& pair : pairs) {
    least = std::min({least, pair.measured_us, pair.predicted_us});
    most = std::max({most, pair.measured_us, pair.predicted_us});
  }
  const double low = std::log10(least) - 0.1, high = std::log10(most) + 0.1;
  const Axis x{low, high, kLeft, kLeft + kSize}, y{low, high, kTop + kSize, kTop};
  std::string svg = absl::StrFormat(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" "
      "font-family=\"sans-serif\" font-size=\"12\">\n"
      "<rect width=\"100%%\" height=\"100%%\" fill=\"white\"/>\n"
      "<rect x=\"%d\" y=\"%d\" width=\"%d\" height=\"%d\" fill=\"none\" stroke=\"#888\"/>\n",
      kLeft + kSize + 20, kTop + kSize + 50, kLeft, kTop, kSize, kSize);
  for (int power = static_cast<int>(std::ceil(low)); power <= high; ++power) {
    const double us = std::pow(10, power);
    absl::StrAppendFormat(&svg,
                          "<line x1=\"%.1f\" x2=\"%.1f\" y1=\"%d\" y2=\"%d\" stroke=\"#ddd\"/>\n"
                          "<line x1=\"%d\" x2=\"%d\" y1=\"%.1f\" y2=\"%.1f\" stroke=\"#ddd\"/>\n"
                          "<text x=\"%.1f\" y=\"%d\" text-anchor=\"middle\">%g ms</text>\n"
                          "<text x=\"%d\" y=\"%.1f\" text-anchor=\"end\">%g ms</text>\n",
                          x.At(us), x.At(us), kTop, kTop + kSize, kLeft, kLeft + kSize, y.At(us),
                          y.At(us), x.At(us), kTop + kSize + 18, us / 1000, kLeft - 6, y.At(us) + 4,
                          us / 1000);
  }
  const double end = std::pow(10, high), start = std::pow(10, low);
  absl::StrAppendFormat(
      &svg,
      "<clipPath id=\"plot\"><rect x=\"%d\" y=\"%d\" width=\"%d\" height=\"%d\"/></clipPath>\n"
      "<polygon clip-path=\"url(#plot)\" fill=\"#cde\" points=\"%.1f,%.1f %.1f,%.1f %.1f,%.1f "
      "%.1f,%.1f\"/>\n<line x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\" stroke=\"#68a\"/>\n",
      kLeft, kTop, kSize, kSize, x.At(start), y.At(start * (1 + kGoal)), x.At(end),
      y.At(end * (1 + kGoal)), x.At(end), y.At(end * (1 - kGoal)), x.At(start),
      y.At(start * (1 - kGoal)), x.At(start), y.At(start), x.At(end), y.At(end));
  for (const PlanComparison& pair : pairs) {
    absl::StrAppendFormat(&svg,
                          "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"3.5\" fill=\"%s\" "
                          "fill-opacity=\"0.7\"><title>%s, %s, %s: %s</title></circle>\n",
                          x.At(pair.measured_us), y.At(pair.predicted_us),
                          pair.communicator == "mpi" ? "#c40" : "#046", pair.model, pair.plan,
                          pair.communicator, Percent(pair.TimeError()));
  }
  absl::StrAppendFormat(&svg,
                        "<text x=\"%d\" y=\"%d\" text-anchor=\"middle\">measured step (blue: "
                        "threads, red: processes; band: 5 %%)</text>\n"
                        "<text transform=\"translate(14,%d) rotate(-90)\" "
                        "text-anchor=\"middle\">predicted step</text>\n</svg>\n",
                        kLeft + kSize / 2, kTop + kSize + 40, kTop + kSize / 2);
  return svg;
}

}  // namespace isomer
