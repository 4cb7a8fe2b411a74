#include <algorithm>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "pcg/ir/plan.h"
#include "pcg/support/hash.h"
#include "pcg/support/status_macros.h"
#include "verifier/mutation/example_graphs.h"
#include "verifier/mutation/mutants.h"
#include "verifier/mutation/plan_changes.h"
#include "verifier/plans/plan_checker.h"

namespace isomer {
namespace {

constexpr int kSeeds = 40, kPlansOfAModel = 3;

bool MakesParallel(const Rule& rule) {
  return std::any_of(rule.target.nodes.begin(), rule.target.nodes.end(),
                     [](const PatternNode& node) { return IsParallel(node.kind); });
}

MutantVerdict JudgePlan(const Certified& base, const PlanChange& change) {
  Plan plan = base.plan;
  change.change(&plan);
  if (plan.seal == SealOf(plan)) return Equal("nothing that a plan says was changed");
  if (CheckPlan(plan, base.rules).ok()) return Missed("a broken seal is accepted");
  plan.seal = SealOf(plan);
  const absl::Status verdict = CheckPlan(plan, base.rules);
  if (!verdict.ok()) {
    const std::string message(verdict.message());
    std::string by = message.substr(0, message.find_first_of(": "));
    return Caught("CheckPlan: " + by, message);
  }
  if (plan.graph.StructuralHash() != base.plan.graph.StructuralHash()) {
    return Missed("another graph is accepted");
  }
  if (plan.views != base.plan.views) {
    return Equal("the same graph, its tasks on other devices; the schedule for them passes");
  }
  return Equal("the same graph, by an equal derivation that replays");
}

}  // namespace

absl::StatusOr<std::vector<Mutant>> PlanMutants(const RuleSet& rules, uint64_t seed) {
  ISOMER_ASSIGN_OR_RETURN(const std::vector<Model> models, ExampleModels());
  std::vector<const Rule*> parallel;
  for (const Rule& rule : rules.rules) {
    if (MakesParallel(rule)) parallel.push_back(&rule);
  }
  std::vector<Mutant> mutants;
  for (const Model& model : models) {
    int made = 0;
    for (uint64_t draw = 0; draw < kSeeds && made < kPlansOfAModel; ++draw) {
      const auto base =
          std::make_shared<Certified>(DeriveCertified(model, parallel, HashCombine(seed, draw)));
      // A placement may be one that the lowering does not take; then another derivation.
      if (base->plan.steps.size() < 2 || !CheckPlan(base->plan, base->rules).ok()) continue;
      ++made;
      for (PlanChange& change : ChangesOf(*base)) {
        mutants.push_back(
            {MutantKind::kPlan, absl::StrCat(model.name, ", derivation ", draw), change.what,
             [base, change = std::move(change)](Prover*) { return JudgePlan(*base, change); }});
      }
    }
    if (made == 0) {
      return absl::FailedPreconditionError(
          absl::StrCat("no derivation from ", model.name, " gives a plan that passes CheckPlan"));
    }
  }
  return mutants;
}

}  // namespace isomer
