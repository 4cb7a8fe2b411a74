#include "verifier/audit/judge_translation.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "verifier/audit/format_proof.h"
#include "verifier/audit/strengthenings.h"
#include "verifier/proving/value_proof.h"
#include "verifier/refutation/shrink.h"
#include "verifier/terms/rule_instance.h"
#include "verifier/types/type_proof.h"

namespace isomer {
namespace {

using Verdict = ProofRecord::Verdict;

// Whether some types of the inputs fit `pattern`; nullopt: that is not decided here. `why`: what
// is wrong with inputs that are not parallel.
std::optional<bool> EverTypes(const Rule& rule, const Pattern& pattern, std::string* why) {
  Rule self = rule;
  self.source = self.target = pattern;
  const auto instances = InstancesOf(self);
  if (!instances.ok()) return std::nullopt;
  for (const RuleInstance& instance : *instances) {
    for (uint64_t seed : {1, 2}) {
      for (const Binding& binding : SmallBindings(instance, 4, seed)) {
        if (InstantiatePattern(pattern, binding).ok()) return true;
      }
    }
    Binding plain;
    auto value = [](const Extent& size) {
      int64_t sum = size.constant();
      for (const auto& [symbol, coefficient] : size.terms()) sum += 16 * coefficient;
      return sum;
    };
    for (const Shape& shape : instance.inputs) {
      std::vector<int64_t> sizes;
      for (const Extent& size : shape) sizes.push_back(value(size));
      plain.inputs.push_back(SequentialType(sizes));
    }
    for (const auto& [name, size] : instance.sizes) plain.variables[name] = value(size);
    if (why->empty()) *why = std::string(InstantiatePattern(pattern, plain).status().message());
  }
  return false;
}

class Judge {
 public:
  Judge(const Translation& translation, ForeignFormat format, Prover* prover)
      : translation_(translation), format_(format), prover_(prover) {}

  TranslationVerdict RunOfWhole() {
    if (auto decided = JudgeWhole()) return *std::move(decided);
    Judgement undecided;
    undecided.record.note = "neither proved nor refuted of tensors that are not parallel";
    return NotProved(undecided, undecided);
  }

  TranslationVerdict Run() {
    Conditions extra;
    Judgement first = Try(extra);
    Judgement last = first;
    const std::vector<Conditions> groups = Strengthenings(translation_);
    for (const Conditions& group : groups) {
      if (Holds(last)) break;
      const bool is_known = &group == &groups.front() && !MayBroadcast();
      if (group.empty() || is_known) continue;
      extra.insert(extra.end(), group.begin(), group.end());
      Judgement judgement = Try(extra);
      // What contradicts the source is of no use.
      if (judgement.record.verdict == Verdict::kUnknown && !beyond_format_ &&
          last.record.verdict == Verdict::kRefuted) {
        extra.resize(extra.size() - group.size());
        continue;
      }
      last = std::move(judgement);
    }
    if (Holds(last)) return Proved(std::move(extra), last.record);
    if (format_ == ForeignFormat::kTaso) {
      if (auto decided = JudgeWhole()) return *std::move(decided);
    }
    return NotProved(first, last);
  }

 private:
  // Proved, or evaluated alike: TranslationVerdict::complete says which.
  static bool Holds(const Judgement& judgement) {
    return judgement.record.verdict == Verdict::kProved ||
           judgement.record.verdict == Verdict::kChecked;
  }

  // The formats do not broadcast; a rule that holds with broadcasting says more. Its cases grow
  // fast with the number of operands.
  bool MayBroadcast() const { return translation_.rule.num_inputs <= 3; }

  void SetRule(const Conditions& extra) {
    rule_ = translation_.rule;
    const Conditions none;
    const Conditions& shapes = MayBroadcast() ? none : translation_.shapes;
    for (const Conditions* list : {&translation_.stated, &shapes, &translation_.needed, &extra}) {
      rule_.conditions.insert(rule_.conditions.end(), list->begin(), list->end());
    }
    SetId(&rule_);
  }

  // The rule under what the format says of sizes.
  Rule Stated() const {
    Rule rule = translation_.rule;
    for (const Conditions* list :
         {&translation_.stated, &translation_.shapes, &translation_.needed}) {
      rule.conditions.insert(rule.conditions.end(), list->begin(), list->end());
    }
    SetId(&rule);
    return rule;
  }

  static void SetCounterexample(const Counterexample& counterexample, TranslationVerdict* result) {
    result->kind = TranslationVerdict::Kind::kRefuted;
    result->counterexample = Shrink(result->rule, counterexample);
    result->reason = result->counterexample->Summary();
  }

  Judgement Try(const Conditions& extra) {
    SetRule(extra);
    Judgement judgement = prover_->Judge(rule_);
    beyond_format_ = false;
    if (!judgement.counterexample) return judgement;
    const Binding& binding = judgement.counterexample->binding;
    const bool whole = format_ == ForeignFormat::kTaso;
    if (IsOfFloats(binding) && (!whole || IsWhole(binding)) && Admits(Stated(), binding)) {
      return judgement;
    }
    // The format has no such instance.
    std::vector<std::string> lemmas;
    if (!IsOfFloats(binding) && ProvedForFloats(rule_, &values_, &lemmas)) {
      judgement.record.verdict = Verdict::kProved;
      judgement.record.lemmas = std::move(lemmas);
    } else {
      judgement.record.verdict = Verdict::kUnknown;
      beyond_format_ = true;
    }
    judgement.counterexample.reset();
    return judgement;
  }

  // As TASO means it: of tensors that are not parallel.
  std::optional<TranslationVerdict> JudgeWhole() {
    Conditions extra;
    std::vector<Conditions> groups = Strengthenings(translation_);
    groups.resize(3);  // Those on sizes.
    groups.insert(groups.begin(), Conditions());
    for (const Conditions& group : groups) {
      extra.insert(extra.end(), group.begin(), group.end());
      SetRule(extra);
      std::vector<std::string> lemmas;
      if (!ProvedForWhole(rule_, &values_, &lemmas)) continue;
      TranslationVerdict result = ProvedUnder(std::move(extra));
      result.whole_only = true;
      result.complete = true;
      return result;
    }
    TranslationVerdict result;
    result.rule = Stated();
    const auto counterexample = RefutedForWhole(result.rule);
    if (!counterexample) return std::nullopt;
    SetCounterexample(*counterexample, &result);
    return result;
  }

  TranslationVerdict Proved(Conditions extra, ProofRecord record) {
    for (size_t i = extra.size(); i-- > 0;) {
      Conditions fewer = extra;
      fewer.erase(fewer.begin() + i);
      Judgement judgement = Try(fewer);
      if (!Holds(judgement)) continue;
      extra = std::move(fewer);
      record = std::move(judgement.record);
    }
    TranslationVerdict result = ProvedUnder(std::move(extra));
    result.complete = record.verdict == Verdict::kProved;
    result.rule.proof = std::move(record);
    return result;
  }

  TranslationVerdict ProvedUnder(Conditions extra) {
    SetRule(extra);
    TranslationVerdict result;
    result.kind = TranslationVerdict::Kind::kProved;
    result.rule = rule_;
    result.conditions = translation_.needed;
    result.conditions.insert(result.conditions.end(), extra.begin(), extra.end());
    return result;
  }

  TranslationVerdict NotProved(const Judgement& first, const Judgement& last) {
    TranslationVerdict result;
    result.rule = Stated();
    std::string why;
    if (EverTypes(result.rule, result.rule.source, &why) == std::optional(false)) {
      result.kind = TranslationVerdict::Kind::kSourceIllTyped;
      result.reason = absl::StrCat("source: no types of its inputs fit; if they are whole: ", why);
      return result;
    }
    if (EverTypes(result.rule, result.rule.target, &why) == std::optional(false)) {
      result.kind = TranslationVerdict::Kind::kTargetIllTyped;
      result.reason = absl::StrCat("target: no types of its inputs fit; if they are whole: ", why);
      return result;
    }
    // The narrowest case that is refuted says most.
    const bool narrow = last.record.verdict == Verdict::kRefuted;
    const Judgement& refuted = narrow ? last : first;
    const bool is_refuted = refuted.record.verdict == Verdict::kRefuted;
    if (is_refuted && (narrow || refuted.counterexample->kind == Counterexample::Kind::kValues)) {
      SetCounterexample(*refuted.counterexample, &result);
      return result;
    }
    result.reason = last.record.note;
    if (is_refuted) {
      absl::StrAppend(&result.reason, "; without conditions: ", refuted.record.note);
    }
    return result;
  }

  const Translation& translation_;
  const ForeignFormat format_;
  Prover* const prover_;
  ValueProver values_;
  Rule rule_;                   // judged last
  bool beyond_format_ = false;  // it was refuted, by what the format does not have
};

}  // namespace

TranslationVerdict JudgeTranslation(const Translation& translation, ForeignFormat format,
                                    Prover* prover) {
  return Judge(translation, format, prover).Run();
}

TranslationVerdict JudgeOfWhole(const Translation& translation, Prover* prover) {
  return Judge(translation, ForeignFormat::kTaso, prover).RunOfWhole();
}

}  // namespace isomer
