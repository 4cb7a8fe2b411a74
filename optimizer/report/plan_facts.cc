#include "optimizer/report/plan_facts.h"

#include <algorithm>
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "optimizer/sharding/rule_index.h"

namespace isomer {
namespace {

std::string RuleKind(const Rule& rule) {
  if (!UsesParallelOperators(rule)) return "algebra";
  return InnerNode(rule.source) < 0 ? "chain" : "split";
}

}  // namespace

std::vector<RuleUse> RulesUsed(const Plan& plan, const RuleSet& rules) {
  std::map<std::string, RuleUse> uses;
  for (const DerivationStep& step : plan.steps) {
    // A step without a rule is identified by its statement.
    const std::string stated =
        step.rule.empty() && !step.calls.empty() ? step.calls.back().op.ToString() : "";
    RuleUse& use = uses[absl::StrCat(step.rule, stated)];
    if (++use.times > 1) continue;
    if (step.rule.empty()) {
      use = {.id = "-",
             .kind = "definition",
             .text = absl::StrCat(step.nodes.size(), " calls that are ",
                                  stated.empty() ? "what they are given" : stated),
             .times = use.times};
      continue;
    }
    use.id = step.rule;
    if (const Rule* rule = rules.Find(step.rule); rule != nullptr) {
      use.kind = RuleKind(*rule);
      use.text = rule->ToString();
    }
  }
  std::vector<RuleUse> sorted;
  for (auto& [id, use] : uses) sorted.push_back(std::move(use));
  std::stable_sort(sorted.begin(), sorted.end(),
                   [](const RuleUse& a, const RuleUse& b) { return a.times > b.times; });
  return sorted;
}

namespace {

int64_t CallsAmong(const std::vector<NodeId>& nodes, const Graph& graph) {
  return std::count_if(nodes.begin(), nodes.end(),
                       [&](NodeId id) { return !IsParallel(graph.node(id).op.kind()); });
}

}  // namespace

int64_t RecomputedOperators(const Plan& plan) { return CallsAmong(plan.recomputed, plan.graph); }

int64_t OffloadedOperators(const Plan& plan) { return CallsAmong(plan.offloaded, plan.graph); }

}  // namespace isomer
