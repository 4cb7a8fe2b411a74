#include "generator/inspect/use.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "rules/language/find_rule.h"
#include "rules/matching/rewrite.h"
#include "rules/matching/rule_matcher.h"

namespace isomer {
namespace {

// Of algebra, in one direction or both.
std::vector<const Rule*> AlgebraOf(const RuleSet& rules) {
  std::vector<const Rule*> algebra;
  for (const std::vector<Rule>* of : {&rules.rules, &rules.inverses()}) {
    for (const Rule& rule : *of) {
      if (KindOf(rule) == RuleKind::kAlgebra) algebra.push_back(&rule);
    }
  }
  return algebra;
}

// Uses by plan, and matches by model; equal models are one.
class Counter {
 public:
  explicit Counter(const RuleSet& rules) : rules_(rules), matcher_(AlgebraOf(rules)) {
    for (const Rule& rule : rules.rules) {
      of_id_[rule.id] = {.id = rule.id, .kind = KindOf(rule), .text = rule.ToString()};
    }
  }

  absl::Status Add(const Plan& plan) {
    ++plans_;
    std::set<std::string> used;
    for (const DerivationStep& step : plan.steps) {
      if (step.rule.empty()) {
        ++defined_steps_;
        continue;
      }
      if (rules_.Find(step.rule) == nullptr) {
        return absl::InvalidArgumentError(absl::StrCat("the plan of ", plan.model.name,
                                                       " uses rule ", step.rule,
                                                       ", which is not in the file"));
      }
      const std::string id = WithoutInverse(step.rule);
      ++of_id_.at(id).steps;
      if (used.insert(id).second) ++of_id_.at(id).plans;
    }
    if (models_.insert(plan.model.graph.StructuralHash()).second) Match(plan.model.graph);
    return absl::OkStatus();
  }

  UseOfRules Take() {
    UseOfRules use{.plans = plans_, .defined_steps = defined_steps_, .rules = {}};
    for (auto& [id, of_rule] : of_id_) use.rules.push_back(std::move(of_rule));
    const auto key = [](const UseOfRule& of) {
      return std::tuple(-of.plans, -of.steps, -of.models, -of.matches);
    };
    std::stable_sort(use.rules.begin(), use.rules.end(),
                     [&](const UseOfRule& a, const UseOfRule& b) { return key(a) < key(b); });
    return use;
  }

 private:
  void Match(const Graph& graph) {
    const GraphIndex index(graph);
    std::map<std::string, std::set<std::vector<NodeId>>> places;
    for (const RuleMatch& match : matcher_.Find(index)) {
      places[WithoutInverse(match.rule->id)].insert(match.step.nodes);
    }
    for (const auto& [id, of_rule] : places) {
      ++of_id_.at(id).models;
      of_id_.at(id).matches += static_cast<int64_t>(of_rule.size());
    }
  }

  const RuleSet& rules_;
  RuleMatcher matcher_;
  std::map<std::string, UseOfRule> of_id_;
  std::set<uint64_t> models_;
  int64_t plans_ = 0, defined_steps_ = 0;
};

struct Tally {
  int64_t rules = 0, used = 0, matched = 0;  // matched and not used
};

Tally TallyOf(const UseOfRules& use, RuleKind kind) {
  Tally tally;
  for (const UseOfRule& rule : use.rules) {
    if (rule.kind != kind) continue;
    ++tally.rules;
    tally.used += rule.plans > 0;
    tally.matched += rule.plans == 0 && rule.matches > 0;
  }
  return tally;
}

// The rule's text, cut to one line.
std::string Shortened(const std::string& text) {
  constexpr size_t kWidth = 90;
  return text.size() <= kWidth ? text : text.substr(0, kWidth - 3) + "...";
}

}  // namespace

absl::StatusOr<UseOfRules> CountUse(const RuleSet& rules, const std::vector<Plan>& plans) {
  Counter counter(rules);
  for (const Plan& plan : plans) {
    if (const absl::Status added = counter.Add(plan); !added.ok()) return added;
  }
  return counter.Take();
}

std::string UseText(const UseOfRules& use) {
  std::string text = absl::StrFormat("%d plan%s, %d of %s steps by definition\n\n", use.plans,
                                     use.plans == 1 ? "" : "s", use.defined_steps,
                                     use.plans == 1 ? "its" : "their");
  absl::StrAppendFormat(&text, "%-10s %6s %6s %14s\n", "kind", "rules", "used", "only matched");
  for (RuleKind kind : {RuleKind::kAlgebra, RuleKind::kMixing, RuleKind::kMoving}) {
    const Tally tally = TallyOf(use, kind);
    absl::StrAppendFormat(&text, "%-10s %6d %6d %14s\n", RuleKindName(kind), tally.rules,
                          tally.used,
                          kind == RuleKind::kAlgebra ? absl::StrCat(tally.matched) : "-");
  }
  absl::StrAppendFormat(&text, "\n%6s %7s %7s %8s  %s\n", "plans", "steps", "models", "matches",
                        "rule");
  for (const UseOfRule& rule : use.rules) {
    if (rule.plans == 0) break;
    const bool is_algebra = rule.kind == RuleKind::kAlgebra;
    absl::StrAppendFormat(&text, "%6d %7d %7s %8s  %s  %s\n", rule.plans, rule.steps,
                          is_algebra ? absl::StrCat(rule.models) : "-",
                          is_algebra ? absl::StrCat(rule.matches) : "-", rule.id,
                          Shortened(rule.text));
  }
  return text;
}

Json UseJson(const UseOfRules& use) {
  Json json;
  json["plans"] = use.plans;
  json["defined_steps"] = use.defined_steps;
  json["rules"] = Json::EmptyArray();
  for (const UseOfRule& rule : use.rules) {
    if (rule.plans == 0 && rule.matches == 0) continue;
    Json one;
    one["id"] = rule.id;
    one["kind"] = RuleKindName(rule.kind);
    one["plans"] = rule.plans;
    one["steps"] = rule.steps;
    if (rule.kind == RuleKind::kAlgebra) {
      one["models"] = rule.models;
      one["matches"] = rule.matches;
    }
    json["rules"].Append(std::move(one));
  }
  return json;
}

}  // namespace isomer
