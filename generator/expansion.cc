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

// Patterns can say what these attributes are; of others they only say that they are equal.
bool IsPlain(const Operator& op) {
  static const std::set<std::string> kPlain = {"axis", "factor", "epsilon", "sizes"};
  return std::all_of(op.attributes().begin(), op.attributes().end(),
                     [](const Attribute& a) { return kPlain.count(a.name) > 0; });
}

AttributePattern PatternOf(const Attribute& attribute, int rank, bool plain) {
  if (!plain) return {attribute.name, AttributeVariable{attribute.name}};
  if (auto* number = std::get_if<double>(&attribute.value)) {
    return {attribute.name, NumberExpr{*number, {}}};
  }
  if (auto* list = std::get_if<std::vector<Extent>>(&attribute.value)) {
    std::vector<IntExpr> sizes;
    for (const Extent& size : *list) sizes.push_back(IntExpr::Constant(size.value()));
    return {attribute.name, sizes};
  }
  const int64_t value = std::get<int64_t>(attribute.value);
  return {attribute.name, IntExpr::Constant(value >= 0 ? value - rank : value)};
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

  Candidate CandidateOf(const Found& found, bool plain) const {
    Candidate candidate;
    candidate.inputs = call_.operands;
    candidate.origin = found.wrap.op.has_value() ? "carried" : "expansion";
    const int operands = static_cast<int>(call_.operands.size());
    auto call = [&](const Pattern& pattern, std::vector<PatternRef> inputs) {
      (void)pattern;
      PatternNode node{call_.op.kind(), {}, std::move(inputs)};
      for (const Attribute& a : call_.op.attributes()) {
        node.attributes.push_back(PatternOf(a, call_.operands[0].rank(), plain));
      }
      return node;
    };
    std::vector<PatternRef> inputs;
    for (int o = 0; o < operands; ++o) inputs.push_back(PatternRef::Input(o));
    candidate.source.nodes.push_back(call(candidate.source, inputs));
    if (found.wrap.op.has_value()) {
      candidate.source.outputs = {
          Append(*found.wrap.op, PatternRef::Node(0, found.wrapped_output), &candidate.source)};
    } else {
      for (size_t t = 0; t < outputs_.size(); ++t) {
        candidate.source.outputs.push_back(PatternRef::Node(0, static_cast<int>(t)));
      }
    }
    for (int o = 0; o < operands; ++o) {
      if (found.before[o].op.has_value()) {
        inputs[o] = Append(*found.before[o].op, inputs[o], &candidate.target);
      }
    }
    const int inner = static_cast<int>(candidate.target.nodes.size());
    candidate.target.nodes.push_back(call(candidate.target, inputs));
    if (found.wrap.op.has_value()) {
      candidate.target.outputs = {PatternRef::Node(inner, found.wrapped_output)};
      return candidate;
    }
    for (size_t t = 0; t < outputs_.size(); ++t) {
      PatternRef output = PatternRef::Node(inner, static_cast<int>(t));
      if (found.after[t].op.has_value()) {
        output = Append(*found.after[t].op, output, &candidate.target);
      }
      candidate.target.outputs.push_back(output);
    }
    return candidate;
  }

 private:
  static PatternRef Append(const Operator& op, PatternRef input, Pattern* pattern) {
    PatternNode node{op.kind(), {}, {input}};
    for (const Attribute& a : op.attributes()) node.attributes.push_back(PatternOf(a, 0, true));
    // Axes of these operators count from the end already.
    for (AttributePattern& a : node.attributes) {
      a.value = IntExpr::Constant(std::get<int64_t>(*op.Find(a.name)));
    }
    pattern->nodes.push_back(std::move(node));
    return PatternRef::Node(static_cast<int>(pattern->nodes.size()) - 1);
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

// The family of a form: axes of the call's one split dim, attributes as they are.
GeneralRule FamilyOf(const Candidate& candidate, const Found& found) {
  GeneralRule general{ConstantRule(candidate), {}};
  Rule& rule = general.rule;
  general.found.inputs = candidate.inputs;
  rule.variables.push_back({"d", VariableKind::kDegree});
  general.found.variables["d"] = 1;
  for (const AttributePattern& a : candidate.source.nodes[0].attributes) {
    rule.variables.push_back({a.name, VariableKind::kAttribute});
  }
  auto is_call = [&](const PatternNode& node) { return !IsParallel(node.kind); };
  int next_operand = 0, next_output = 0;
  bool after_call = false;
  for (Pattern* side : {&rule.source, &rule.target}) {
    for (PatternNode& node : side->nodes) {
      after_call |= is_call(node) && side == &rule.target;
      for (AttributePattern& a : node.attributes) {
        if (is_call(node)) continue;
        if (a.name == "degree") a.value = IntExpr::Variable("d");
        if (a.name != "axis") continue;
        const std::string name =
            after_call ? absl::StrCat("j", next_output++) : absl::StrCat("i", next_operand++);
        rule.variables.push_back({name, VariableKind::kAxis});
        a.value = IntExpr::Variable(name);
      }
    }
  }
  if (found.wrap.op.has_value()) return general;  // Replicate only: no dim is split.
  Condition condition{
      .kind = Condition::Kind::kSplitsDim, .left = IntExpr::Variable("d"), .node = 0};
  next_operand = next_output = 0;
  for (const Around& around : found.before) {
    condition.operand_axes.push_back(
        around.Form() == 'P' ? std::optional(IntExpr::Variable(absl::StrCat("i", next_operand++)))
                             : std::nullopt);
  }
  for (const Around& around : found.after) {
    condition.output_axes.push_back(
        around.Form() == 'C' ? std::optional(IntExpr::Variable(absl::StrCat("j", next_output++)))
                             : std::nullopt);
  }
  rule.conditions = {condition};
  return general;
}

// A family gathers the calls in which its form occurred.
struct Family {
  GeneralRule general;
  std::vector<Binding> calls;
};

bool HoldsAtAll(const Family& family, TypeOracle* oracle, Random* random) {
  for (const Binding& call : family.calls) {
    Rule rule = family.general.rule;
    std::vector<int> ranks;
    for (const TensorType& type : call.inputs) ranks.push_back(type.rank());
    rule.ranks = {ranks};
    if (!Recheck(rule, call, 6, oracle, random)) return false;
  }
  return true;
}

class KindExpander {
 public:
  KindExpander(OpKind kind, TypeOracle* oracle, Random* random, Statistics* statistics)
      : kind_(kind), oracle_(oracle), random_(random), statistics_(statistics) {}

  std::vector<GeneralRule> Run() {
    for (const SampleCall& call : SampleCalls(kind_)) {
      CallExpander expander(call, oracle_, statistics_);
      const bool plain = IsPlain(call.op);
      for (const Found& found : expander.Run()) {
        ++statistics_->candidates;
        const Candidate candidate = expander.CandidateOf(found, plain);
        if (plain) {
          AddPlain(candidate);
        } else {
          AddToFamily(call, found, candidate);
        }
      }
    }
    FinishFamilies();
    return std::move(rules_);
  }

 private:
  void AddPlain(const Candidate& candidate) {
    const std::string text = ConstantRule(candidate).ToString();
    const absl::StatusOr<CandidateGraphs> graphs = GraphsOf(candidate);
    Binding as_found;
    as_found.inputs = candidate.inputs;
    const auto agree = ValuesAgree(ConstantRule(candidate), as_found, random_);
    if (!graphs.ok() || !agree.ok() || !*agree) {
      statistics_->Prune("values differ on a second look", text);
      return;
    }
    if (book_.IsInstance(*graphs)) {
      statistics_->Prune("instance of a more general rule", text);
      return;
    }
    std::optional<GeneralRule> general = Generalize(candidate, oracle_, random_);
    if (!general.has_value()) {
      statistics_->Prune("does not generalise", text);
      return;
    }
    if (!Merge(*general)) {
      book_.Add(general->rule);
      rules_.push_back(*std::move(general));
    }
  }

  // A rule found again at other ranks is one rule.
  bool Merge(const GeneralRule& general) {
    for (GeneralRule& known : rules_) {
      if (known.rule.ToString() != general.rule.ToString()) continue;
      std::vector<std::vector<int>>& ranks = known.rule.ranks;
      ranks.insert(ranks.end(), general.rule.ranks.begin(), general.rule.ranks.end());
      std::sort(ranks.begin(), ranks.end());
      ranks.erase(std::unique(ranks.begin(), ranks.end()), ranks.end());
      SetId(&known.rule);
      book_.Add(known.rule);
      return true;
    }
    return false;
  }

  void AddToFamily(const SampleCall& call, const Found& found, const Candidate& candidate) {
    if (found.wrap.Form() == 'P') return;  // The inverse of a family needs its conditions.
    auto [entry, fresh] = families_.try_emplace(absl::StrCat(found.Form(), found.wrapped_output));
    Family& family = entry->second;
    if (fresh) {
      family.general = FamilyOf(candidate, found);
      family.general.rule.ranks.clear();
    } else {
      statistics_->Prune("instance of a more general rule", ConstantRule(candidate).ToString());
    }
    Binding binding;
    std::vector<int> ranks;
    for (const TensorType& type : call.operands) ranks.push_back(type.rank());
    binding.inputs = call.operands;
    binding.variables["d"] = 1;
    for (const Attribute& a : call.op.attributes()) binding.attributes[a.name] = a.value;
    auto& known = family.general.rule.ranks;
    if (std::find(known.begin(), known.end(), ranks) == known.end()) known.push_back(ranks);
    if (fresh) family.general.found = binding;
    family.calls.push_back(std::move(binding));
  }

  void FinishFamilies() {
    for (auto& [form, family] : families_) {
      Rule& rule = family.general.rule;
      std::sort(rule.ranks.begin(), rule.ranks.end());
      if (!HoldsAtAll(family, oracle_, random_)) {
        statistics_->Prune("does not generalise", rule.ToString());
        continue;
      }
      rule.origin = rule.conditions.empty() ? "carried, family" : "expansion, family";
      SetId(&rule);
      rules_.push_back(family.general);
    }
  }

  const OpKind kind_;
  TypeOracle* const oracle_;
  Random* const random_;
  Statistics* const statistics_;
  RuleBook book_;
  std::map<std::string, Family> families_;
  std::vector<GeneralRule> rules_;
};

}  // namespace

std::vector<GeneralRule> FindExpansions(OpKind kind, TypeOracle* oracle, Random* random,
                                        Statistics* statistics) {
  return KindExpander(kind, oracle, random, statistics).Run();
}

}  // namespace isomer
