#include "generator/pipeline/step_items.h"

#include <cmath>

#include "generator/assignments/sample_calls.h"
#include "generator/pipeline/memo.pb.h"
#include "generator/pipeline/step_records.h"
#include "generator/schemas/algebra_families.h"
#include "generator/schemas/definition_families.h"
#include "generator/schemas/expansion.h"
#include "generator/schemas/kernel_families.h"

namespace isomer {
namespace {

std::string NameOf(OpKind kind) {
  const absl::string_view name = OpName(kind);
  return std::string(name.data(), name.size());
}

// Of one operand along each of its dims, or not.
double NumCuts(OpKind kind) {
  double cuts = 0;
  for (const OperatorCall& call : SampleCalls(kind)) {
    double of_call = 1;
    for (const TensorType& type : call.operands) of_call *= 1 + type.rank();
    cuts += of_call;
  }
  return cuts;
}

std::string BytesOfRules(const std::vector<GeneralRule>& rules) {
  proto::RulesInput input;
  for (const GeneralRule& general : rules) input.add_rules(EncodeJudged(general.rule));
  return input.SerializeAsString();
}

}  // namespace

const std::vector<FamilyForm>& FamilyForms() {
  static const auto* const forms = new std::vector<FamilyForm>{
      {"expansions", FindExpansions, {}},
      {"algebra", FindAlgebraFamilies, OperatorsOfAlgebraFamilies()},
      {"kernels", FindKernelFamilies, OperatorsOfKernelFamilies()},
      {"definitions", FindDefinitionFamilies, OperatorsOfDefinitionFamilies()},
  };
  return *forms;
}

StepItem FamiliesItem(const StepKeys& keys, const FamilyForm& form, OpKind kind) {
  proto::FamiliesInput input;
  input.set_seed(keys.seed());
  input.set_form(form.name);
  input.set_kind(NameOf(kind));
  StepItem item = {"families", input.SerializeAsString(),
                   keys.OfFamilies(form.name, kind, form.around)};
  item.cost = NumCuts(kind);
  return item;
}

StepItem EnumerationItem(const StepKeys& keys, const GenerateOptions& options,
                         const Configuration& configuration) {
  proto::EnumerationInput input;
  input.set_seed(keys.seed());
  for (OpKind kind : options.kinds) input.add_kinds(NameOf(kind));
  input.set_max_operators(options.max_operators);
  input.set_configurations(static_cast<int32_t>(options.configurations));
  input.set_configuration(configuration.name);
  return {"enumerate", input.SerializeAsString(), keys.OfEnumeration(configuration)};
}

StepItem GeneralizationItem(const StepKeys& keys, const Candidate& candidate) {
  proto::GeneralizationInput input;
  input.set_seed(keys.seed());
  input.set_candidate(EncodeCandidate(candidate));
  return {"generalize", input.SerializeAsString(), keys.OfGeneralization(candidate)};
}

StepItem ProofItem(const StepKeys& keys, const GeneralRule& rule) {
  StepItem item = {"prove", EncodeGeneralRule(rule), keys.OfProof(rule), /*first=*/false};
  const Rule& r = rule.rule;
  item.cost = std::ldexp(static_cast<double>(r.ranks.size() * r.source.outputs.size() *
                                             (r.source.nodes.size() + r.target.nodes.size())),
                         r.num_inputs);
  return item;
}

StepItem DerivationItem(const Candidate& candidate, int composition_steps, bool only_instance) {
  proto::DerivationInput input;
  input.set_candidate(EncodeCandidate(candidate));
  input.set_steps(composition_steps);
  input.set_only_instance(only_instance);
  return {"derive", input.SerializeAsString()};
}

StepItem AllRulesItem(const std::vector<GeneralRule>& rules) {
  return {"all rules", BytesOfRules(rules)};
}
StepItem NewRulesItem(const std::vector<GeneralRule>& rules) {
  return {"new rules", BytesOfRules(rules)};
}

}  // namespace isomer
