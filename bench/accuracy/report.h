// The results of bench/accuracy as a page, as data, and as a picture.
#ifndef ISOMER_BENCH_ACCURACY_REPORT_H_
#define ISOMER_BENCH_ACCURACY_REPORT_H_

#include <string>
#include <vector>

#include "bench/accuracy/comparison.h"
#include "pcg/support/json.h"

namespace isomer {

struct AccuracySummary {
  double median_time_error = 0, median_memory_error = 0;  // of absolute relative errors
  double within_5_percent = 0;                            // the part of the pairs whose time is
  double memory_within_5_percent = 0;                     // and whose memory is
  double rank_correlation = 0;                            // over all pairs
  // Of the plans of one model with one communicator (FlexFlow, figure 10): the median correlation,
  // and the part of pairs of plans that are predicted in the order in which they are measured.
  // Pairs whose measured times lie within 2 % of each other have no order.
  double median_correlation_in_model = 0;
  double pairs_in_order = 0;
  int ordered_pairs = 0;
};
AccuracySummary Summarise(const std::vector<PlanComparison>& pairs);

// Markdown: the summary, every pair, and why the worst three are.
std::string AccuracyPage(const std::vector<PlanComparison>& pairs, const AccuracySummary& summary);
Json AccuracyJson(const std::vector<PlanComparison>& pairs, const AccuracySummary& summary);
// A line for every task of every pair.
std::string TasksCsv(const std::vector<PlanComparison>& pairs);
// Predicted against measured step times on logarithmic axes, with a band of 5 %.
std::string AccuracySvg(const std::vector<PlanComparison>& pairs);

}  // namespace isomer

#endif  // ISOMER_BENCH_ACCURACY_REPORT_H_
