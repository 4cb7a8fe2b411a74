// A plan and what led to it as the summary that scripts read (--json).
#ifndef ISOMER_OPTIMIZER_REPORT_JSON_H_
#define ISOMER_OPTIMIZER_REPORT_JSON_H_

#include "optimizer/cost.h"
#include "optimizer/explanation.h"
#include "optimizer/optimizer.h"
#include "pcg/support/json.h"
#include "rules/rule.h"

namespace isomer {

Json ReportJson(const OptimizeResult& result, const Explanation& explanation, const RuleSet& rules,
                const CostModel& cost);

}  // namespace isomer

#endif  // ISOMER_OPTIMIZER_REPORT_JSON_H_
