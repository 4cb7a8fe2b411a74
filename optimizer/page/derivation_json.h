// The derivation of a plan: its steps, what each gains, and the proofs of the rules.
#ifndef ISOMER_OPTIMIZER_PAGE_DERIVATION_JSON_H_
#define ISOMER_OPTIMIZER_PAGE_DERIVATION_JSON_H_

#include "optimizer/cost/cost.h"
#include "optimizer/page/lineage.h"
#include "pcg/ir/plan.h"
#include "pcg/support/json.h"
#include "rules/language/rule.h"

namespace isomer {

// {steps, row_of_step: [..], rows: [{rule, at, operators, result, times, first_step,
// task_us_before, task_us_after, rewrites_calls}]}: equal steps of repeated layers are one row, at
// the place of the first. The times are those of one task, forward and in training backward, of the
// calls that a step replaces and of those that it puts there, by the cost model, on the slowest
// device; of all steps of the row together. What exchanges cost is known of the whole plan alone.
Json DerivationJson(const Plan& plan, const Lineage& lineage, const CostModel& cost);

// {id: {id, kind, times, equation, verdict, lemmas, solver, seconds, note}} of the rules used.
Json RulesJson(const Plan& plan, const RuleSet& rules);

}  // namespace isomer

#endif  // ISOMER_OPTIMIZER_PAGE_DERIVATION_JSON_H_
