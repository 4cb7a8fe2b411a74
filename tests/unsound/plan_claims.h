// Plans that claim to compute what a model computes, and the judgement of isomer-verify on them.
#ifndef ISOMER_TESTS_UNSOUND_PLAN_CLAIMS_H_
#define ISOMER_TESTS_UNSOUND_PLAN_CLAIMS_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "pcg/ir/plan.h"
#include "rules/language/rule.h"

namespace isomer {

// What somebody hands over: a plan and the rules it was made with, for the model that the user has.
struct PlanClaim {
  Model own;
  Plan plan;
  RuleSet rules;
};

// The plan has the rules' digest and the seal that its maker would have given it.
void Seal(PlanClaim* claim);

// The plan as a file, and the verdict of `isomer-verify plan` on such a file: of the schedule of
// one device of each class as by default, and of all. Refused if either refuses.
std::string FileOf(const Plan& plan);
absl::Status JudgeFile(const std::string& file, const PlanClaim& claim);
inline absl::Status Judge(const PlanClaim& claim) { return JudgeFile(FileOf(claim.plan), claim); }

// A model of the source of `rule` at `binding`, with a loss where its first output can have one,
// its float inputs being weights; and the plan that applies the rule to all of it. Whether the
// sides are equal is not asked. Where the target has no types the plan's graph is the model's.
// Errors: the source has no types, or is parallel.
absl::StatusOr<PlanClaim> ClaimOfRule(const Rule& rule, const Binding& binding);

// Gives the plan the graph that its steps lead to, equal or not, and row-major views on as many
// devices as they need. The error is that of the first step that cannot be made.
absl::Status FollowSteps(PlanClaim* claim);

}  // namespace isomer

#endif  // ISOMER_TESTS_UNSOUND_PLAN_CLAIMS_H_
