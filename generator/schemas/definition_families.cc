#include "generator/schemas/definition_families.h"

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "generator/assignments/sample_calls.h"
#include "generator/assignments/trial.h"
#include "generator/preconditions/settle.h"
#include "generator/schemas/part_search.h"
#include "pcg/ir/declaration.h"
#include "pcg/ir/examples.h"

namespace isomer {
namespace {

// Smaller graphs are enumerated.
constexpr size_t kMostEnumerated = 3;
// Calls of one form that are searched: one may have sizes that no other operator takes.
constexpr int kMostSearched = 2;

// Alike for calls that differ in sizes, ranks, axes and numbers alone.
std::string FormOf(const OperatorCall& call) {
  std::string form = absl::StrCat(call.operands.size());
  for (const Attribute& a : call.op.attributes()) {
    if (a.name == "axis" || std::holds_alternative<double>(a.value)) continue;
    absl::StrAppend(&form, " ", a.name, "=", AttributeText(a.value));
  }
  return form;
}

// The call's axis and numbers become variables wherever the equation has them; bound to what they
// are at the call.
class VariableMaker {
 public:
  VariableMaker(const OperatorCall& call, GeneralRule* general) : general_(general) {
    for (const Attribute& a : call.op.attributes()) {
      if (a.name == "axis") {
        const int64_t axis = std::get<int64_t>(a.value);
        axis_ = axis < 0 ? axis : axis - call.operands[0].rank();
        AddVariable("i", VariableKind::kAxis);
        general->found.variables["i"] = *axis_;
      } else if (auto* number = std::get_if<double>(&a.value)) {
        numbers_[*number] = a.name;
        AddVariable(a.name, VariableKind::kNumber);
        general->found.numbers[a.name] = *number;
      }
    }
  }

  void Replace(Pattern* side) const {
    for (PatternNode& node : side->nodes) {
      for (AttributePattern& a : node.attributes) {
        if (auto* number = std::get_if<NumberExpr>(&a.value)) {
          if (const auto at = numbers_.find(number->constant); at != numbers_.end()) {
            *number = {1, {at->second}};
          }
        }
        if (a.name == "axis") ReplaceAxis(std::get_if<IntExpr>(&a.value));
        if (a.name != "axes") continue;
        for (IntExpr& axis : std::get<std::vector<IntExpr>>(a.value)) ReplaceAxis(&axis);
      }
    }
  }

 private:
  void AddVariable(const std::string& name, VariableKind kind) {
    general_->rule.variables.push_back({name, kind});
  }
  void ReplaceAxis(IntExpr* axis) const {
    if (axis != nullptr && axis_ == axis->constant) *axis = IntExpr::Variable("i");
  }

  GeneralRule* const general_;
  std::optional<int64_t> axis_;
  std::map<double, std::string> numbers_;
};

// The operands fit the call: dims that one iteration dim goes along are of one size.
std::vector<Condition> FittingSizes(const OperatorCall& call) {
  const absl::StatusOr<Declaration> d = DeclarationOf(call);
  if (!d.ok()) return {};
  std::vector<Condition> conditions;
  std::map<int, IntExpr> sizes;  // of iteration dims
  for (const Access& access : d->accesses) {
    if (access.tensor >= d->num_operands()) continue;
    const int rank = static_cast<int>(access.indices.size());
    for (int i = 0; i < rank; ++i) {
      const Index& index = access.indices[i];
      Condition condition{.kind = Condition::Kind::kEqual,
                          .left = IntExpr::SizeOf(access.tensor, i - rank),
                          .right = IntExpr::Constant(1)};
      if (index != Index()) {
        if (index.terms.size() != 1 || index != Index(index.terms[0].first)) continue;
        const auto [known, is_new] = sizes.emplace(index.terms[0].first, condition.left);
        if (is_new || known->second == condition.left) continue;
        condition.right = std::exchange(condition.left, known->second);
      }
      if (std::find(conditions.begin(), conditions.end(), condition) == conditions.end()) {
        conditions.push_back(condition);
      }
    }
  }
  return conditions;
}

class DefinitionFamilies {
 public:
  DefinitionFamilies(OpKind kind, TypeOracle* oracle, Random* random, Statistics* statistics)
      : calls_(WithExamples(kind, SampleCalls(kind))),
        oracle_(oracle),
        random_(random),
        statistics_(statistics) {}

  std::vector<GeneralRule> Run() {
    std::map<std::string, int> searched;
    for (const OperatorCall& call : calls_) {
      int& count = searched[FormOf(call)];
      if (count++ >= kMostSearched) continue;
      const std::optional<Candidate> equation = FindParts(call, random_);
      if (!equation.has_value()) continue;
      count = kMostSearched;
      if (equation->target.nodes.size() > kMostEnumerated) AddRules(call, *equation);
    }
    return std::move(rules_);
  }

 private:
  static GeneralRule RuleAt(const OperatorCall& call, const Candidate& equation) {
    GeneralRule general;
    general.rule = ConstantRule(equation);
    general.found.inputs = call.operands;
    const VariableMaker variables(call, &general);
    variables.Replace(&general.rule.source);
    variables.Replace(&general.rule.target);
    general.rule.ranks = {RanksOf(call.operands)};
    general.rule.conditions = FittingSizes(call);
    return general;
  }

  // A rule for each set of sizes that must fit, of all ranks of which there is a call.
  void AddRules(const OperatorCall& found_at, const Candidate& equation) {
    std::map<std::string, GeneralRule> rules;  // by what they say of sizes
    const GeneralRule first = RuleAt(found_at, equation);
    for (const OperatorCall& call : calls_) {
      if (FormOf(call) != FormOf(found_at)) continue;
      GeneralRule general = RuleAt(call, equation);
      general.rule.source = first.rule.source;
      general.rule.target = first.rule.target;
      if (!HoldsAt(general.rule, general.found)) continue;
      std::string sizes;
      for (const Condition& c : general.rule.conditions) absl::StrAppend(&sizes, c.ToString(), ";");
      const auto [at, is_new] = rules.emplace(sizes, general);
      std::vector<std::vector<int>>& ranks = at->second.rule.ranks;
      if (!is_new && std::find(ranks.begin(), ranks.end(), general.rule.ranks[0]) == ranks.end()) {
        ranks.push_back(general.rule.ranks[0]);
      }
    }
    for (auto& [sizes, general] : rules) Add(std::move(general));
  }

  void Add(GeneralRule general) {
    ++statistics_->candidates;
    Rule& rule = general.rule;
    std::sort(rule.ranks.begin(), rule.ranks.end());
    if (!HoldsAround(rule, general.found, kTrials, false, oracle_, random_)) return;
    rule.reversible = true;
    rule.reversible = HoldsAround(Inverse(rule), general.found, kTrials, false, oracle_, random_);
    SetId(&rule);
    rules_.push_back(std::move(general));
  }

  bool HoldsAt(const Rule& rule, const Binding& binding) {
    ++statistics_->graphs_enumerated;
    return TypesAndValuesAgree(rule, binding, oracle_, random_);
  }

  static constexpr int kTrials = 24;
  const std::vector<OperatorCall> calls_;
  TypeOracle* const oracle_;
  Random* const random_;
  Statistics* const statistics_;
  std::vector<GeneralRule> rules_;
};

}  // namespace

std::vector<GeneralRule> FindDefinitionFamilies(OpKind kind, TypeOracle* oracle, Random* random,
                                                Statistics* statistics) {
  if (IsLeaf(kind) || IsParallel(kind)) return {};
  return DefinitionFamilies(kind, oracle, random, statistics).Run();
}

std::set<OpKind> OperatorsOfDefinitionFamilies() {
  const std::vector<OpKind> kinds = PartOperators();
  return {kinds.begin(), kinds.end()};
}

}  // namespace isomer
