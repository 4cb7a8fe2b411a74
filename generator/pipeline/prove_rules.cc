#include "generator/pipeline/prove_rules.h"

#include <algorithm>
#include <memory>
#include <set>
#include <string>

#include "generator/pipeline/step_items.h"
#include "generator/pipeline/step_records.h"
#include "generator/preconditions/settle.h"
#include "pcg/support/check.h"
#include "pcg/support/progress.h"
#include "pcg/support/status_macros.h"
#include "rules/matching/conditions.h"

namespace isomer {
namespace {

bool HasParallelOperators(const Rule& rule) {
  const auto parallel = [](const PatternNode& node) { return IsParallel(node.kind); };
  return std::any_of(rule.source.nodes.begin(), rule.source.nodes.end(), parallel) ||
         std::any_of(rule.target.nodes.begin(), rule.target.nodes.end(), parallel);
}

bool HasAttributeVariables(const Rule& rule) {
  return std::any_of(rule.variables.begin(), rule.variables.end(),
                     [](const RuleVariable& v) { return v.kind == VariableKind::kAttribute; });
}

// What cannot be proved of all calls may hold of those that theorems speak of.
bool AskForStructure(Rule* rule) {
  if (HasParallelOperators(*rule) || HasCondition(*rule, Condition::Kind::kByStructure)) {
    return false;
  }
  rule->conditions.push_back({.kind = Condition::Kind::kByStructure});
  SetId(rule);
  return true;
}

// What no theorem speaks of may be false besides, which says more.
Rule RefutedWithoutStructure(Rule rule, const Judge& judge) {
  if (!HasCondition(rule, Condition::Kind::kByStructure)) return rule;
  Rule bare = WithoutConditions(rule, Condition::Kind::kByStructure);
  bare.proof = judge(bare).record;
  return bare.proof.verdict == ProofRecord::Verdict::kRefuted ? bare : rule;
}

// The direction of a reversible rule that may be provable: the inverse, if that is and the other is
// not.
Rule OneDirection(Rule rule, const Judge& judge) {
  Rule inverse = Inverse(rule);
  for (Rule* direction : {&rule, &inverse}) {
    direction->reversible = false;
    SetId(direction);
  }
  const bool forward = judge(rule).record.verdict == ProofRecord::Verdict::kProved;
  const bool backward = !forward && judge(inverse).record.verdict == ProofRecord::Verdict::kProved;
  return backward ? inverse : rule;
}

Rule ProveOrRepair(const GeneralRule& general, const Judge& judge, TypeOracle* oracle) {
  constexpr int kRepairs = 6;
  Rule rule = general.rule;
  Random random(rule.Digest());
  std::vector<Binding> counterexamples;
  for (int repair = 0;; ++repair) {
    if (HasAttributeVariables(rule)) AskForStructure(&rule);
    const Verdict verdict = judge(rule);
    rule.proof = verdict.record;
    const bool unknown = rule.proof.verdict == ProofRecord::Verdict::kUnknown;
    if (unknown && rule.reversible) {
      rule = OneDirection(rule, judge);
      continue;
    }
    const bool checked = rule.proof.verdict == ProofRecord::Verdict::kChecked;
    if ((unknown || checked) && AskForStructure(&rule)) continue;
    if (unknown) return RefutedWithoutStructure(rule, judge);
    if (!verdict.counterexample.has_value() || repair == kRepairs) return rule;
    counterexamples.push_back(*verdict.counterexample);
    const std::optional<Rule> repaired =
        Resettle(rule, general.found, counterexamples, oracle, &random);
    if (!repaired.has_value()) return rule;
    rule = *repaired;
  }
}

// The same; if the rule is refuted for good, what it generalises is tried with fewer variables.
Rule ProveSomeForm(GeneralRule general, const Judge& judge, TypeOracle* oracle) {
  std::set<std::string> refuted;
  while (true) {
    const Rule judged = ProveOrRepair(general, judge, oracle);
    if (judged.proof.verdict != ProofRecord::Verdict::kRefuted ||
        general.candidate.inputs.empty()) {
      return judged;
    }
    refuted.insert(PatternsText(general.rule));
    Random random(general.rule.Digest());
    std::optional<GeneralRule> other = Generalize(general.candidate, oracle, &random, refuted);
    if (!other.has_value()) return judged;
    general = *std::move(other);
  }
}

}  // namespace

Step ProofStep(Judge judge) {
  return [judge = std::move(judge),
          oracle = std::make_shared<TypeOracle>()](const std::string& input) -> StepResult {
    absl::StatusOr<GeneralRule> rule = DecodeGeneralRule(input);
    ISOMER_CHECK(rule.ok());
    const Rule judged = ProveSomeForm(*std::move(rule), judge, oracle.get());
    const bool settled = judged.proof.verdict == ProofRecord::Verdict::kProved ||
                         judged.proof.verdict == ProofRecord::Verdict::kRefuted;
    return {EncodeJudged(judged), settled};
  };
}

size_t Proofs::PlaceOf(const GeneralRule& rule) {
  const StepItem item = ProofItem(*keys_, rule);
  const auto [entry, fresh] = places_.try_emplace(item.key, judged_.size());
  const size_t place = entry->second;
  if (!fresh) return place;
  judged_.emplace_back();
  queue_->Do(item, [this, place](const std::string& bytes) {
    absl::StatusOr<Rule> judged = DecodeJudged(bytes);
    if (!judged.ok()) return false;
    judged_[place] = *std::move(judged);
    return true;
  });
  return place;
}

void Proofs::Begin(const GeneralRule& rule) { begun_.push_back(PlaceOf(rule)); }

absl::StatusOr<std::vector<Rule>> Proofs::Take(std::FILE* out) {
  std::unique_ptr<Progress> progress;
  if (out != nullptr) {
    progress = std::make_unique<Progress>("prove", static_cast<int64_t>(begun_.size()), out);
  }
  std::vector<Rule> rules;
  for (const size_t place : begun_) {
    ISOMER_RETURN_IF_ERROR(queue_->WaitUntil([this, place] { return judged_[place].has_value(); }));
    rules.push_back(*judged_[place]);
    if (progress != nullptr) progress->Advance();
  }
  return rules;
}

}  // namespace isomer
