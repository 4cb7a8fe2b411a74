#include "generator/pipeline/steps.h"

#include <algorithm>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "generator/enumeration/configuration.h"
#include "generator/enumeration/derived_configurations.h"
#include "generator/enumeration/enumerator.h"
#include "generator/pipeline/memo.pb.h"
#include "generator/pipeline/settle_candidates.h"
#include "generator/pipeline/step_items.h"
#include "generator/pipeline/step_records.h"
#include "generator/preconditions/prune.h"
#include "generator/preconditions/settle.h"
#include "pcg/support/check.h"
#include "pcg/support/hash.h"

namespace isomer {
namespace {

// Items are made by this program.
template <typename Result>
Result Checked(absl::StatusOr<Result> decoded) {
  ISOMER_CHECK(decoded.ok());
  return *std::move(decoded);
}
template <typename Message>
Message InputOf(const std::string& bytes) {
  Message message;
  ISOMER_CHECK(message.ParseFromString(bytes));
  return message;
}

// What the steps of one worker have in common.
struct Worker {
  TypeOracle oracle;
  RuleBook book;  // of the rules that it was told
  // Those that the options of the last item chose, which those of one run have in common.
  std::string options;
  std::vector<Configuration> configurations;

  StepResult FindFamilies(const std::string& bytes);
  StepResult EnumerateIn(const std::string& bytes);
  StepResult GeneralizeOne(const std::string& bytes);
  StepResult Derive(const std::string& bytes);
  // `anew`: nothing else.
  StepResult Know(const std::string& bytes, bool anew);
};

StepResult Worker::FindFamilies(const std::string& bytes) {
  const auto input = InputOf<proto::FamiliesInput>(bytes);
  const OpKind kind = Checked(ParseOpKind(input.kind()));
  const std::vector<FamilyForm>& forms = FamilyForms();
  const auto form = std::find_if(forms.begin(), forms.end(),
                                 [&](const FamilyForm& f) { return f.name == input.form(); });
  ISOMER_CHECK(form != forms.end());
  Random random(HashCombine(input.seed(), uint64_t(kind)));
  Families families;
  families.rules = form->find(kind, &oracle, &random, &families.statistics);
  return {Encode(families)};
}

std::vector<Configuration> ConfigurationsOf(const proto::EnumerationInput& input) {
  std::set<OpKind> kinds;
  for (const std::string& name : input.kinds()) kinds.insert(Checked(ParseOpKind(name)));
  const auto choice = static_cast<ConfigurationChoice>(input.configurations());
  return ChosenConfigurations(choice, kinds, input.max_operators());
}

StepResult Worker::EnumerateIn(const std::string& bytes) {
  auto input = InputOf<proto::EnumerationInput>(bytes);
  const std::string name = std::move(*input.mutable_configuration());
  input.clear_configuration();
  if (const std::string chosen = input.SerializeAsString(); chosen != options) {
    options = chosen;
    configurations = ConfigurationsOf(input);
  }
  const auto named = std::find_if(configurations.begin(), configurations.end(),
                                  [&](const Configuration& c) { return c.name == name; });
  ISOMER_CHECK(named != configurations.end());
  Random random(HashBytes(name, input.seed()));
  EnumerationResult result;
  result.candidates = Enumerate(*named, &oracle, &random, &result.statistics);
  return {Encode(result)};
}

StepResult Worker::GeneralizeOne(const std::string& bytes) {
  constexpr int kTrials = 8;
  // relu(3 relu(x)) is 3 relu(x) at three of four elements of the field, and tensors are small.
  constexpr int kDraws = 8;
  const auto input = InputOf<proto::GeneralizationInput>(bytes);
  const Candidate candidate = Checked(DecodeCandidate(input.candidate()));
  Random random(HashBytes(FormOf(candidate), input.seed()));
  Generalized result;
  result.rule = Generalize(candidate, &oracle, &random);
  result.holds = result.rule.has_value() && HoldsAround(result.rule->rule, result.rule->found,
                                                        kTrials, false, &oracle, &random, kDraws);
  return {Encode(result)};
}

StepResult Worker::Derive(const std::string& bytes) {
  const auto input = InputOf<proto::DerivationInput>(bytes);
  absl::StatusOr<CandidateGraphs> graphs = GraphsOf(Checked(DecodeCandidate(input.candidate())));
  Derived derived;
  derived.well_typed = graphs.ok();
  if (graphs.ok()) {
    derived.commuted = FormHash(graphs->source) == FormHash(graphs->target);
    Derivations derivations(*std::move(graphs), input.steps());
    derived.known = input.only_instance() ? derivations.IsInstance(book)
                                          : !derived.commuted && derivations.Find(book).kind !=
                                                                     Derivations::Kind::kNone;
    derived.state = derivations.state();
  }
  return {Encode(derived), /*lasts=*/false};
}

StepResult Worker::Know(const std::string& bytes, bool anew) {
  if (anew) book = RuleBook();
  const auto input = InputOf<proto::RulesInput>(bytes);
  for (const std::string& rule : input.rules()) book.Add(Checked(DecodeJudged(rule)));
  return {};
}

}  // namespace

MakeSteps GeneratorSteps(std::function<Judge()> make_judge) {
  return [make_judge = std::move(make_judge)] {
    const auto worker = std::make_shared<Worker>();
    Steps steps;
    steps["families"] = [worker](const auto& bytes) { return worker->FindFamilies(bytes); };
    steps["enumerate"] = [worker](const auto& bytes) { return worker->EnumerateIn(bytes); };
    steps["generalize"] = [worker](const auto& bytes) { return worker->GeneralizeOne(bytes); };
    steps["derive"] = [worker](const auto& bytes) { return worker->Derive(bytes); };
    steps["all rules"] = [worker](const auto& bytes) { return worker->Know(bytes, true); };
    steps["new rules"] = [worker](const auto& bytes) { return worker->Know(bytes, false); };
    if (make_judge != nullptr) steps["prove"] = ProofStep(make_judge());
    return steps;
  };
}

}  // namespace isomer
