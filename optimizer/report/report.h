// The plan for a cluster engineer: what is split, how, where, and the gain.
#ifndef ISOMER_OPTIMIZER_REPORT_REPORT_H_
#define ISOMER_OPTIMIZER_REPORT_REPORT_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "optimizer/report/explanation.h"
#include "optimizer/report/node_times.h"
#include "optimizer/search/optimizer.h"
#include "optimizer/simulator/simulator.h"
#include "pcg/support/json.h"

namespace isomer {

struct Report {
  std::string headline;  // HeadlineOf
  // The headline, the table and the summary below it. Repeated layers are one row: differing digits
  // in names are shown as *.
  std::string text;
  Json json;  // summary for --json
  // What both are made of.
  Explanation explanation;
  std::vector<NodeTimes> times;
};
// `verbose`: the text also lists the rules, all rows of its tables, and says more of the search.
// The rest is the same.
absl::StatusOr<Report> ReportOf(const OptimizeResult& result, const RuleSet& rules,
                                const CostModel& cost, bool verbose = false);

// Origins of times: "measured for 120 tasks, 97 % of the time; calibrated for 4 tasks, ..".
std::string TimesFrom(const Simulation& simulation);

}  // namespace isomer

#endif  // ISOMER_OPTIMIZER_REPORT_REPORT_H_
