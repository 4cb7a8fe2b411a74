// What a user says of the step as a whole (constraints.proto), held against plans.
//
// A plan is asked what it does, not who proposed it or what it was meant to be: micro-batches are
// those of its views, stages and chunks those of its schedule, and what it computes again is what
// that mode means for its graph.
#ifndef ISOMER_OPTIMIZER_PROPOSAL_STEP_CONSTRAINT_H_
#define ISOMER_OPTIMIZER_PROPOSAL_STEP_CONSTRAINT_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "optimizer/cost/cost.h"
#include "optimizer/proposal/optimize_options.h"
#include "optimizer/sharding/constraints.h"
#include "pcg/ir/plan.h"

namespace isomer {

// What a plan does otherwise, "it has 1 micro-batches"; "": nothing. Without its stages and chunks,
// for which a schedule is needed.
absl::StatusOr<std::string> DeviationWithoutSchedule(const Constraints::OfStep& step,
                                                     const Plan& plan);
// The same of stages and chunks. Lowers plans of several micro-batches.
absl::StatusOr<std::string> DeviationOfPipeline(const Constraints::OfStep& step,
                                                const CostModel& cost, const Plan& plan);
// Both.
absl::StatusOr<std::string> DeviationOf(const Constraints::OfStep& step, const CostModel& cost,
                                        const Plan& plan);

// What no search on so many devices could do, or the options contradict: one line that names the
// file, the field and the reason.
absl::Status CheckStepConstraint(const OptimizeOptions& options, const Model& model,
                                 int64_t devices);

}  // namespace isomer

#endif  // ISOMER_OPTIMIZER_PROPOSAL_STEP_CONSTRAINT_H_
