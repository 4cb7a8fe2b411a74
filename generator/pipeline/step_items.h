// The steps of generation that workers do, as items: what each takes, and under which key its
// result is kept.
#ifndef ISOMER_GENERATOR_PIPELINE_STEP_ITEMS_H_
#define ISOMER_GENERATOR_PIPELINE_STEP_ITEMS_H_

#include <set>
#include <string>
#include <vector>

#include "generator/assignments/statistics.h"
#include "generator/assignments/type_oracle.h"
#include "generator/enumeration/configuration.h"
#include "generator/pipeline/generate.h"
#include "generator/pipeline/step_keys.h"
#include "generator/preconditions/generalize.h"
#include "generator/workers/workers.h"

namespace isomer {

// Rules that hold for all calls of one operator, found from its declaration.
struct FamilyForm {
  const char* name;
  std::vector<GeneralRule> (*find)(OpKind, TypeOracle*, Random*, Statistics*);
  std::set<OpKind> around;  // declared operators that occur in them besides the operator
};
const std::vector<FamilyForm>& FamilyForms();

// Its cost is the number of ways to cut operands of sample calls.
StepItem FamiliesItem(const StepKeys& keys, const FamilyForm& form, OpKind kind);
// `configuration` is one of those that the options choose.
StepItem EnumerationItem(const StepKeys& keys, const GenerateOptions& options,
                         const Configuration& configuration);
StepItem GeneralizationItem(const StepKeys& keys, const Candidate& candidate);
// Its cost grows with the cases that are proved one by one: ranks, and inputs that may be parallel.
StepItem ProofItem(const StepKeys& keys, const GeneralRule& rule);

// Of what is not kept: whether the rules that were told derive a candidate (Derived in
// step_records.h), or whether it is an instance of one.
StepItem DerivationItem(const Candidate& candidate, int composition_steps, bool only_instance);
// To tell: all rules that there are, and those that are new.
StepItem AllRulesItem(const std::vector<GeneralRule>& rules);
StepItem NewRulesItem(const std::vector<GeneralRule>& rules);

}  // namespace isomer

#endif  // ISOMER_GENERATOR_PIPELINE_STEP_ITEMS_H_
