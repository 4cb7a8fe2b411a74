#include "generator/inspect/counts.h"

#include <algorithm>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "generator/inspect/instances.h"
#include "generator/inspect/kinds.h"
#include "pcg/support/hash.h"

namespace isomer {
namespace {

const char* ConditionName(Condition::Kind kind) {
  switch (kind) {
    case Condition::Kind::kEqual:
      return "equal";
    case Condition::Kind::kNotEqual:
      return "not equal";
    case Condition::Kind::kAtMost:
      return "at most";
    case Condition::Kind::kDivides:
      return "divides";
    case Condition::Kind::kSameType:
      return "same type";
    case Condition::Kind::kSplitsDim:
      return "splits a dim";
    case Condition::Kind::kNoPartials:
      return "no partials";
    case Condition::Kind::kUnpartitioned:
      return "not partitioned";
    case Condition::Kind::kByStructure:
      return "by structure";
  }
  return "?";
}

// "enumerated: chains" -> "enumerated".
std::string OriginOf(const Rule& rule) {
  const std::vector<std::string> words = absl::StrSplit(rule.origin, absl::ByAnyChar(":,"));
  return words[0].empty() ? "unknown" : words[0];
}

}  // namespace

RuleCounts CountRules(const RuleSet& rules, bool instances) {
  RuleCounts counts;
  counts.generator = rules.generator;
  counts.digest = DigestString(rules.Digest());
  std::vector<RuleCount> operators(kNumOpKinds);
  const std::vector<std::vector<Instance>> found =
      instances ? InstancesOf(rules.rules) : std::vector<std::vector<Instance>>(rules.rules.size());
  InstanceCounter counter;
  for (size_t r = 0; r < rules.rules.size(); ++r) {
    const Rule& rule = rules.rules[r];
    const RuleCount one{1, counter.Add(found[r])};
    auto add = [&](RuleCount* count) {
      count->rules += one.rules;
      count->instances += one.instances;
    };
    add(&counts.all);
    const RuleKind kind = KindOf(rule);
    if (kind == RuleKind::kAlgebra) add(&counts.algebra);
    if (kind != RuleKind::kAlgebra) add(&counts.parallel);
    if (kind == RuleKind::kMixing) add(&counts.mixing);
    if (kind == RuleKind::kMoving) add(&counts.moving);
    if (IsJoint(rule)) add(&counts.joint);
    if (rule.reversible) add(&counts.reversible);
    add(rule.proof.verdict == ProofRecord::Verdict::kProved    ? &counts.proved
        : rule.proof.verdict == ProofRecord::Verdict::kChecked ? &counts.checked
                                                               : &counts.unproved);
    add(&counts.sizes[static_cast<int>(
        std::max(rule.source.nodes.size(), rule.target.nodes.size()))]);
    add(&counts.origins[OriginOf(rule)]);
    const OpKindSet kinds = OperatorsOf(rule);
    for (size_t k = 0; k < kinds.size(); ++k) {
      if (kinds[k]) add(&operators[k]);
    }
    std::map<std::string, bool> conditions;
    for (const Condition& condition : rule.conditions) conditions[ConditionName(condition.kind)];
    for (const auto& [name, unused] : conditions) ++counts.conditions[name];
    if (conditions.empty()) ++counts.conditions["none"];
  }
  for (OpKind kind : AllOpKinds()) {
    const RuleCount& count = operators[static_cast<size_t>(kind)];
    if (count.rules > 0) counts.operators.push_back({std::string(OpName(kind)), count});
  }
  return counts;
}

}  // namespace isomer
