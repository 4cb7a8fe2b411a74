// --report: a plan and its search as one page of HTML that needs nothing else.
//
// The page is a pure function of one JSON object, which lies in it: {report: what --json writes,
// text: the report as text, bars, devices, graphs: {model, plan}, derivation, rules, timeline,
// memory, traffic}. Whatever is told in several places is computed once.
#ifndef ISOMER_OPTIMIZER_PAGE_REPORT_PAGE_H_
#define ISOMER_OPTIMIZER_PAGE_REPORT_PAGE_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "optimizer/comparison/baseline_summaries.h"
#include "optimizer/cost/cost.h"
#include "optimizer/report/report.h"
#include "optimizer/search/optimizer.h"
#include "pcg/support/json.h"
#include "rules/language/rule.h"

namespace isomer {

// Ok if this program was built with the page; else one line that names the packages.
absl::Status CheckHasPage();

// `report` and `baselines` are those of `result`. Without a derivation if that names rules that are
// not there.
absl::StatusOr<Json> PageJson(const OptimizeResult& result, const Report& report,
                              const RuleSet& rules, const CostModel& cost,
                              BaselineSummaries* baselines);

// JSON as a part of HTML: no text in it ends the element that it is in, nor opens a comment.
std::string JsonInHtml(const Json& json);

// REQUIRES: CheckHasPage().
std::string PageWith(const Json& data, absl::string_view title, absl::string_view text);

}  // namespace isomer

#endif  // ISOMER_OPTIMIZER_PAGE_REPORT_PAGE_H_
