#include "generator/expansion.h"

#include <algorithm>
#include <functional>
#include <map>
#include <set>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "generator/sample_calls.h"
#include "generator/settle.h"
#include "generator/trial.h"
#include "pcg/parallel_operator.h"

namespace isomer {
namespace {

constexpr int64_t kDegree = 2;

// What stands before an operand or after an output.
struct Around {
  std::optional<Operator> op;
  char Form() const {
    if (!op.has_value()) return '-';
    switch (op->kind()) {
      case OpKind::kPartition:
        return 'P';
      case OpKind::kCombine:
        return 'C';
      case OpKind::kReplicate:
        return 'R';
      default:
        return '+';
    }
  }
};

// One equality: source is the call (`wrap` after it if set), target the call within operators.
struct Found {
  Around wrap;
  int wrapped_output = 0;
  std::vector<Around> before, after;
  std::string Form() const {
    std::string form = absl::StrCat(std::string(1, wrap.Form()), ":");
    for (const Around& around : before) form.push_back(around.Form());
    form.push_back('>');
    for (const Around& around : after) form.push_back(around.Form());
    return form;
  }
};

std::vector<Around> AroundOperand(int rank) {
  std::vector<Around> result = {{std::nullopt}, {Replicate(kDegree)}};
  for (int64_t axis = -1; axis >= -rank; --axis) result.push_back({Partition(axis, kDegree)});
  return result;
}

std::vector<Around> AroundOutput(int rank) {
  std::vector<Around> result = {{std::nullopt}, {Reduce(kDegree)}};
  for (int64_t axis = -1; axis >= -rank; --axis) result.push_back({Combine(axis, kDegree)});
  return result;
}

// Attributes of the call as variables, bound to what they are at this call. Axes, numbers and sizes
// are variables that conditions could speak of; any other attribute is one as a whole.
struct CallPattern {
  std::vector<AttributePattern> attributes;
  std::vector<RuleVariable> variables;
  Binding binding;
};

CallPattern PatternOfCall(const SampleCall& call) {
  CallPattern pattern;
  const int rank = call.operands[0].rank();
  pattern.binding.inputs = call.operands;
  for (const Attribute& a : call.op.attributes()) {
    if (auto* number = std::get_if<double>(&a.value)) {
      pattern.attributes.push_back({a.name, NumberExpr{1, {a.name}}});
      pattern.variables.push_back({a.name, VariableKind::kNumber});
      pattern.binding.numbers[a.name] = *number;
    } else if (auto* list = std::get_if<std::vector<Extent>>(&a.value);
               list != nullptr && call.op.kind() == OpKind::kSplit) {
      std::vector<IntExpr> sizes;
      for (size_t s = 0; s < list->size(); ++s) {
        const std::string name = absl::StrCat("s", s);
        sizes.push_back(IntExpr::Variable(name));
        pattern.variables.push_back({name, VariableKind::kSize});
        pattern.binding.variables[name] = (*list)[s].value();
      }
      pattern.attributes.push_back({a.name, sizes});
    } else if (a.name == "axis" &&
               call.op.kind() != OpKind::kOneHot) {  // OneHot's is the output's.
      const int64_t axis = std::get<int64_t>(a.value);
      pattern.attributes.push_back({a.name, IntExpr::Variable("a")});
      pattern.variables.push_back({"a", VariableKind::kAxis});
      pattern.binding.variables["a"] = axis >= 0 ? axis - rank : axis;
    } else {
      pattern.attributes.push_back({a.name, AttributeVariable{a.name}});
      pattern.variables.push_back({a.name, VariableKind::kAttribute});
      pattern.binding.attributes[a.name] = a.value;
    }
  }
  return pattern;
}

class CallExpander {
 public:
  CallExpander(const SampleCall& call, TypeOracle* oracle, Statistics* statistics)
      : call_(call), oracle_(oracle), statistics_(statistics), before_(call.operands.size()) {
    if (const auto* types = oracle->Infer(call.op, call.operands)) outputs_ = *types;
  }

  std::vector<Found> Run() {
    if (!outputs_.empty()) ChooseOperand(0, call_.operands);
    return std::move(found_);
  }

  size_t num_outputs() const { return outputs_.size(); }

  // The family that a found equality belongs to: its axes are variables, and d.
  Rule FamilyOf(const Found& found) const {
    const CallPattern call = PatternOfCall(call_);
    Rule rule;
    const int operands = static_cast<int>(call_.operands.size());
    const bool carried = found.wrap.op.has_value();
    rule.num_inputs = operands;
    rule.origin = carried ? "carried, family" : "expansion, family";
    rule.variables = call.variables;
    rule.variables.push_back({"d", VariableKind::kDegree});
    Condition condition{
        .kind = Condition::Kind::kSplitsDim, .left = IntExpr::Variable("d"), .node = 0};
    std::vector<PatternRef> inputs;
    for (int o = 0; o < operands; ++o) inputs.push_back(PatternRef::Input(o));
    rule.source.nodes.push_back({call_.op.kind(), call.attributes, inputs});
    for (int o = 0; o < operands; ++o) {
      condition.operand_axes.push_back(
          Append(found.before[o], absl::StrCat("i", o), &inputs[o], &rule, &rule.target));
    }
    const int inner = static_cast<int>(rule.target.nodes.size());
    rule.target.nodes.push_back({call_.op.kind(), call.attributes, inputs});
    if (carried) {
      PatternRef output = PatternRef::Node(0, found.wrapped_output);
      Append(found.wrap, "", &output, &rule, &rule.source);
      rule.source.outputs = {output};
      rule.target.outputs = {PatternRef::Node(inner, found.wrapped_output)};
      return rule;  // Nothing but copies: no dim is split.
    }
    for (size_t t = 0; t < outputs_.size(); ++t) {
      rule.source.outputs.push_back(PatternRef::Node(0, static_cast<int>(t)));
      PatternRef output = PatternRef::Node(inner, static_cast<int>(t));
      condition.output_axes.push_back(
          Append(found.after[t], absl::StrCat("j", t), &output, &rule, &rule.target));
      rule.target.outputs.push_back(output);
    }
    rule.conditions = {condition};
    return rule;
  }

 private:
  // Puts an operator on `ref`; its axis is a new variable, which is returned.
  static std::optional<IntExpr> Append(const Around& around, const std::string& axis,
                                       PatternRef* ref, Rule* rule, Pattern* pattern) {
    if (!around.op.has_value()) return std::nullopt;
    PatternNode node{around.op->kind(), {}, {*ref}};
    std::optional<IntExpr> variable;
    if (around.op->Find("axis") != nullptr) {
      variable = IntExpr::Variable(axis);
      node.attributes.push_back({"axis", *variable});
      rule->variables.push_back({axis, VariableKind::kAxis});
    }
    node.attributes.push_back({"degree", IntExpr::Variable("d")});
    pattern->nodes.push_back(std::move(node));
    *ref = PatternRef::Node(static_cast<int>(pattern->nodes.size()) - 1);
    return variable;
  }

  void ChooseOperand(size_t next, std::vector<TensorType> types) {
    if (next == types.size()) {
      MatchOutputs(types);
      return;
    }
    for (const Around& around : AroundOperand(types[next].rank())) {
      before_[next] = around;
      std::vector<TensorType> chosen = types;
      if (around.op.has_value()) {
        const auto* type = oracle_->Infer(*around.op, {types[next]});
        if (type == nullptr) continue;
        chosen[next] = (*type)[0];
      }
      ChooseOperand(next + 1, std::move(chosen));
    }
  }

  void MatchOutputs(const std::vector<TensorType>& operands) {
    ++statistics_->graphs_enumerated;
    const bool changed = std::any_of(before_.begin(), before_.end(),
                                     [](const Around& a) { return a.op.has_value(); });
    const std::vector<TensorType>* inferred = oracle_->Infer(call_.op, operands);
    if (!changed || inferred == nullptr) return;
    const std::vector<TensorType> inner = *inferred;
    // The call's own types again, by an operator after each output.
    std::vector<Around> after;
    for (size_t t = 0; t < inner.size(); ++t) {
      for (const Around& around : AroundOutput(inner[t].rank())) {
        if (TypeAfter(around, inner[t]) == outputs_[t]) {
          after.push_back(around);
          break;
        }
      }
    }
    if (after.size() == inner.size()) found_.push_back({{}, 0, before_, after});
    // Or the types that a parallel operator after the call gives.
    for (size_t t = 0; t < inner.size(); ++t) {
      for (const Around& wrap : AroundOperand(inner[t].rank())) {
        if (wrap.op.has_value() && TypeAfter(wrap, outputs_[t]) == inner[t]) {
          found_.push_back({wrap, static_cast<int>(t), before_, {}});
        }
      }
    }
  }

  std::optional<TensorType> TypeAfter(const Around& around, const TensorType& type) {
    if (!around.op.has_value()) return type;
    const std::vector<TensorType>* types = oracle_->Infer(*around.op, {type});
    return types == nullptr ? std::nullopt : std::optional((*types)[0]);
  }

  const SampleCall& call_;
  TypeOracle* const oracle_;
  Statistics* const statistics_;
  std::vector<TensorType> outputs_;
  std::vector<Around> before_;
  std::vector<Found> found_;
};

// A family gathers the calls in which its form occurred.
struct Family {
  Rule rule;
  std::vector<Binding> calls;
};

// Tries the family, with more parallelism than it was found with, at every call.
bool HoldsAtAll(const Family& family, TypeOracle* oracle, Random* random) {
  for (const Binding& call : family.calls) {
    Rule rule = family.rule;
    std::vector<int> ranks;
    for (const TensorType& type : call.inputs) ranks.push_back(type.rank());
    rule.ranks = {ranks};
    if (!Recheck(rule, call, 4, oracle, random)) return false;
  }
  return true;
}

}  // namespace

std::vector<GeneralRule> FindExpansions(OpKind kind, TypeOracle* oracle, Random* random,
                                        Statistics* statistics) {
  std::map<std::string, Family> families;
  for (const SampleCall& call : SampleCalls(kind)) {
    CallExpander expander(call, oracle, statistics);
    for (const Found& found : expander.Run()) {
      // The inverse of a family needs the family's condition, which speaks of its source.
      if (found.wrap.Form() == 'P') continue;
      ++statistics->candidates;
      auto [entry, fresh] = families.try_emplace(
          absl::StrCat(found.Form(), found.wrapped_output, ":", expander.num_outputs()));
      Family& family = entry->second;
      if (fresh) {
        family.rule = expander.FamilyOf(found);
      } else {
        statistics->Prune("instance of a more general rule", family.rule.ToString());
      }
      Binding binding = PatternOfCall(call).binding;
      binding.variables["d"] = 1;
      std::vector<int> ranks;
      for (const TensorType& type : call.operands) ranks.push_back(type.rank());
      std::vector<std::vector<int>>& known = family.rule.ranks;
      if (std::find(known.begin(), known.end(), ranks) == known.end()) known.push_back(ranks);
      family.calls.push_back(std::move(binding));
    }
  }
  std::vector<GeneralRule> rules;
  for (auto& [form, family] : families) {
    std::sort(family.rule.ranks.begin(), family.rule.ranks.end());
    if (!HoldsAtAll(family, oracle, random)) {
      statistics->Prune("does not generalise", family.rule.ToString());
      continue;
    }
    family.rule.reversible = family.rule.conditions.empty() &&
                             HoldsAtAll({Inverse(family.rule), family.calls}, oracle, random);
    SetId(&family.rule);
    rules.push_back({family.rule, family.calls[0], {}});
  }
  return rules;
}

}  // namespace isomer
