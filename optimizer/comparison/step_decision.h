// Decisions about the step as a whole, and what each gains: the plan without it, simulated.
#ifndef ISOMER_OPTIMIZER_COMPARISON_STEP_DECISION_H_
#define ISOMER_OPTIMIZER_COMPARISON_STEP_DECISION_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "optimizer/cost/cost.h"
#include "pcg/ir/plan.h"
#include "pcg/support/json.h"

namespace isomer {

struct StepDecision {
  std::string text;     // "80 operators are computed again for the backward pass"
  std::string instead;  // "all results kept"
  // Of the plan without this decision, and with all others.
  double step_us = 0;
  int64_t peak_bytes = 0;
  bool fits = true;
};

// What the plan does otherwise than a framework does by itself: how weights are updated (instead of
// an all-reduce and an update on every copy), what is computed again, buckets, updates during the
// backward pass, states on the host, the order of branches. Empty: nothing.
absl::StatusOr<std::vector<StepDecision>> StepDecisionsOf(const Plan& plan, const CostModel& cost);

// A line each: what is decided, and what it gains in time and memory.
std::string StepDecisionsText(const std::vector<StepDecision>& decisions, const Plan& plan);
Json StepDecisionsJson(const std::vector<StepDecision>& decisions);

}  // namespace isomer

#endif  // ISOMER_OPTIMIZER_COMPARISON_STEP_DECISION_H_
