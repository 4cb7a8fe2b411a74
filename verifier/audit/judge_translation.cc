#include "verifier/audit/judge_translation.h"

#include <algorithm>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "verifier/rule_instance.h"
#include "verifier/type_proof.h"

namespace isomer {
namespace {

using Conditions = std::vector<Condition>;
using Verdict = ProofRecord::Verdict;

bool HasKind(const Pattern& pattern, OpKind kind) {
  return std::any_of(pattern.nodes.begin(), pattern.nodes.end(),
                     [&](const PatternNode& node) { return node.kind == kind; });
}

// Degrees that the target divides by, at any axis of an input that has it.
Conditions Divisibilities(const Rule& rule) {
  std::set<std::pair<int64_t, int64_t>> cuts;  // axis, degree
  for (const PatternNode& node : rule.target.nodes) {
    if (node.kind != OpKind::kPartition) continue;
    int64_t axis = 0, degree = 1;
    for (const AttributePattern& attribute : node.attributes) {
      const auto* expr = std::get_if<IntExpr>(&attribute.value);
      if (expr != nullptr) (attribute.name == "axis" ? axis : degree) = expr->constant;
    }
    cuts.insert({axis, degree});
  }
  Conditions result;
  for (const auto& [axis, degree] : cuts) {
    for (int x = 0; x < rule.num_inputs; ++x) {
      if (rule.ranks[0][x] + axis < 0) continue;
      result.push_back(
          {Condition::Kind::kDivides, IntExpr::Constant(degree), IntExpr::Constant(axis), x});
    }
  }
  return result;
}

// That inputs which differ along one axis do not: what is true of tensors of one size each, as
// those are that rules are found on.
Conditions EqualSizes(const Translation& translation) {
  Conditions result;
  const std::vector<Shape>& shapes = translation.input_shapes;
  for (int x = 0; x < static_cast<int>(shapes.size()); ++x) {
    for (int y = x + 1; y < static_cast<int>(shapes.size()); ++y) {
      if (shapes[x].size() != shapes[y].size()) continue;
      std::vector<int64_t> differ;
      for (size_t i = 0; i < shapes[x].size(); ++i) {
        if (shapes[x][i] == shapes[y][i]) continue;
        differ.push_back(static_cast<int64_t>(i) - static_cast<int64_t>(shapes[x].size()));
      }
      if (differ.size() != 1) continue;
      result.push_back(
          {Condition::Kind::kEqual, IntExpr::SizeOf(y, differ[0]), IntExpr::SizeOf(x, differ[0])});
    }
  }
  return result;
}

// Conditions to add one group after the other.
std::vector<Conditions> Strengthenings(const Translation& translation) {
  const Rule& rule = translation.rule;
  std::vector<Conditions> groups = {translation.shapes, Divisibilities(rule),
                                    EqualSizes(translation)};
  Conditions whole, same, unpartitioned;
  for (int x = 0; x < rule.num_inputs; ++x) {
    whole.push_back({Condition::Kind::kNoPartials, {}, {}, x});
    for (int y = x + 1; y < rule.num_inputs; ++y) {
      if (translation.input_shapes[x] != translation.input_shapes[y]) continue;
      same.push_back({Condition::Kind::kSameType, {}, {}, x, y});
    }
    for (int64_t axis = -rule.ranks[0][x]; axis < 0; ++axis) {
      unpartitioned.push_back({Condition::Kind::kUnpartitioned, {}, IntExpr::Constant(axis), x});
    }
  }
  if (!HasKind(rule.source, OpKind::kReduce)) groups.push_back(std::move(whole));
  if (!HasKind(rule.source, OpKind::kCombine)) groups.push_back(std::move(unpartitioned));
  groups.push_back(std::move(same));
  return groups;
}

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
  Judge(const Translation& translation, Prover* prover)
      : translation_(translation), prover_(prover) {}

  TranslationVerdict Run() {
    Conditions extra;
    Judgement first = Try(extra);
    Judgement last = first;
    for (const Conditions& group : Strengthenings(translation_)) {
      if (last.record.verdict == Verdict::kProved) break;
      if (group.empty()) continue;
      extra.insert(extra.end(), group.begin(), group.end());
      Judgement judgement = Try(extra);
      // What contradicts the source is of no use.
      if (judgement.record.verdict == Verdict::kUnknown &&
          last.record.verdict == Verdict::kRefuted) {
        extra.resize(extra.size() - group.size());
        continue;
      }
      last = std::move(judgement);
    }
    if (last.record.verdict == Verdict::kProved) return Proved(std::move(extra), last.record);
    return NotProved(first, last);
  }

 private:
  Judgement Try(const Conditions& extra) {
    rule_ = translation_.rule;
    for (const Conditions* list : {&translation_.stated, &translation_.needed, &extra}) {
      rule_.conditions.insert(rule_.conditions.end(), list->begin(), list->end());
    }
    SetId(&rule_);
    return prover_->Judge(rule_);
  }

  TranslationVerdict Proved(Conditions extra, ProofRecord record) {
    for (size_t i = extra.size(); i-- > 0;) {
      Conditions fewer = extra;
      fewer.erase(fewer.begin() + i);
      Judgement judgement = Try(fewer);
      if (judgement.record.verdict != Verdict::kProved) continue;
      extra = std::move(fewer);
      record = std::move(judgement.record);
    }
    TranslationVerdict result;
    result.kind = TranslationVerdict::Kind::kProved;
    result.complete = IsComplete(record);
    result.conditions = translation_.needed;
    result.conditions.insert(result.conditions.end(), extra.begin(), extra.end());
    rule_ = translation_.rule;
    rule_.conditions = translation_.stated;
    rule_.conditions.insert(rule_.conditions.end(), result.conditions.begin(),
                            result.conditions.end());
    SetId(&rule_);
    result.rule = rule_;
    result.rule.proof = record;
    return result;
  }

  TranslationVerdict NotProved(const Judgement& first, const Judgement& last) {
    TranslationVerdict result;
    result.rule = translation_.rule;
    result.rule.conditions = translation_.stated;
    result.rule.conditions.insert(result.rule.conditions.end(), translation_.needed.begin(),
                                  translation_.needed.end());
    SetId(&result.rule);
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
    if (refuted.record.verdict == Verdict::kRefuted) {
      result.kind = TranslationVerdict::Kind::kRefuted;
      result.reason = refuted.record.note;
      result.counterexample = refuted.counterexample;
      const bool by_values = result.counterexample->kind == Counterexample::Kind::kValues;
      if (narrow || by_values) return result;
      result.kind = TranslationVerdict::Kind::kUnknown;
      result.reason = absl::StrCat(last.record.note, "; without conditions: ", result.reason);
      result.counterexample.reset();
      return result;
    }
    result.reason = last.record.note;
    return result;
  }

  const Translation& translation_;
  Prover* const prover_;
  Rule rule_;
};

}  // namespace

TranslationVerdict JudgeTranslation(const Translation& translation, Prover* prover) {
  return Judge(translation, prover).Run();
}

}  // namespace isomer
