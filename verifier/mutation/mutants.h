// The mutants of each kind. All draws are from `seed`.
#ifndef ISOMER_VERIFIER_MUTATION_MUTANTS_H_
#define ISOMER_VERIFIER_MUTATION_MUTANTS_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "rules/language/rule.h"
#include "verifier/mutation/mutant.h"

namespace isomer {

// Of every example call's declaration (pcg/ir/examples.h): an index, a reduction, a scalar
// operation, a constant, what a load outside reads, the kind of a dim. Refused by known answers,
// which are recorded (known_answers.h). Whatever a mutant computes, what is derived from it must
// hold: a dim that it allows to partition has pieces that are pieces of the whole, and it is linear
// in what it says it is.
absl::StatusOr<std::vector<Mutant>> DeclarationMutants(uint64_t seed);

// Of a sample of `rules` (pattern_changes.h). Refused by the prover; what it proves all the same is
// evaluated at many assignments.
std::vector<Mutant> RuleMutants(const std::vector<Rule>& rules, int count, uint64_t seed);
// The verdict on one.
MutantVerdict JudgeMutant(const Rule& rule, Prover* prover);

// Of plans made with `rules`: of a step, the graph, a view, what the plan says of itself. Refused
// by CheckPlan.
absl::StatusOr<std::vector<Mutant>> PlanMutants(const RuleSet& rules, uint64_t seed);

// Of the schedules of parallel graphs: a collective, its group, the order of a device's tasks, what
// a task reads, writes or computes, a gradient or its update. Refused by CheckSchedule.
absl::StatusOr<std::vector<Mutant>> ScheduleMutants(uint64_t seed);

// Of what the devices of such schedules run: a wait, a signal, bytes that are touched, the order of
// two commands, where a buffer lies. Refused by CheckMemory or CheckProgram.
absl::StatusOr<std::vector<Mutant>> ProgramMutants(uint64_t seed);

}  // namespace isomer

#endif  // ISOMER_VERIFIER_MUTATION_MUTANTS_H_
