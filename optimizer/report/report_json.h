// The machine-readable summary of a plan and its search (--json).
#ifndef ISOMER_OPTIMIZER_REPORT_REPORT_JSON_H_
#define ISOMER_OPTIMIZER_REPORT_REPORT_JSON_H_

#include <string>

#include "optimizer/cost/cost.h"
#include "optimizer/report/explanation.h"
#include "optimizer/search/optimizer.h"
#include "pcg/support/json.h"
#include "rules/language/rule.h"

namespace isomer {

Json ReportJson(const OptimizeResult& result, const std::string& headline,
                const Explanation& explanation, const RuleSet& rules, const CostModel& cost);

}  // namespace isomer

#endif  // ISOMER_OPTIMIZER_REPORT_REPORT_JSON_H_
