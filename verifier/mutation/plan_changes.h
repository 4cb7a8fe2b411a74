// Plans with certificates, and small changes of them: what goes wrong between a search and a file.
#ifndef ISOMER_VERIFIER_MUTATION_PLAN_CHANGES_H_
#define ISOMER_VERIFIER_MUTATION_PLAN_CHANGES_H_

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "pcg/ir/plan.h"
#include "rules/language/rule.h"

namespace isomer {

// A plan and the rules it was made with, as they would come from files.
struct Certified {
  Plan plan;
  RuleSet rules;
};

// Applies rules drawn from `seed` wherever they match, degrees 2, until there are five steps or no
// more that can be made. The plan is sealed; whether it can run is for its checker.
Certified DeriveCertified(const Model& model, const std::vector<const Rule*>& rules, uint64_t seed);

struct PlanChange {
  std::string what;
  std::function<void(Plan*)> change;  // leaves the seal as it was
};

// Of a step, a node, its type, a view, and what the plan says of itself.
std::vector<PlanChange> ChangesOf(const Certified& certified);

}  // namespace isomer

#endif  // ISOMER_VERIFIER_MUTATION_PLAN_CHANGES_H_
