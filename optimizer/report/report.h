// The plan for a cluster engineer: what is split, how, where, and the gain.
#ifndef ISOMER_OPTIMIZER_REPORT_REPORT_H_
#define ISOMER_OPTIMIZER_REPORT_REPORT_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "optimizer/report/plan_facts.h"
#include "optimizer/search/optimizer.h"
#include "optimizer/sharding/rule_index.h"
#include "pcg/support/json.h"

namespace isomer {

// The sharding of one call: "batch over 2 nodes, columns over 4 devices of a node", "whole, on
// device 0". The first dim of an output is called its batch.
// `with_start`: of what is split, also the first device, where it is not device 0.
absl::StatusOr<std::string> SplitText(const MappedGraph& mapped, NodeId id, const Machine& machine,
                                      bool with_start = true);

// Explains why a call on tensors of these (sequential) types is unsplit on so many devices:
// "because no rule splits it", "because none of its sizes has a divisor in common with 8 devices",
// "though batch or dim 2 could be split". Errors: the call does not type-check.
absl::StatusOr<std::string> WhyWhole(const Operator& op, absl::Span<const TensorType> operands,
                                     int64_t devices, const RuleIndex& rules);

struct Report {
  // The table and the summary below it. Repeated layers are one row: differing digits in names are
  // shown as *.
  std::string text;
  Json json;  // summary for --json
};
absl::StatusOr<Report> ReportOf(const OptimizeResult& result, const RuleSet& rules,
                                const CostModel& cost);

// Origins of times: "measured for 120 tasks, 97 % of the time; calibrated for 4 tasks, ..".
std::string TimesFrom(const Simulation& simulation);

}  // namespace isomer

#endif  // ISOMER_OPTIMIZER_REPORT_REPORT_H_
