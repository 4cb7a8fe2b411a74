// How rules read, and what their digests cover.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "pcg/support/hash.h"
#include "rules/language/rule.h"

namespace isomer {

IntExpr IntExpr::Constant(int64_t value) { return {.kind = Kind::kConstant, .constant = value}; }
IntExpr IntExpr::Variable(std::string name) {
  return {.kind = Kind::kVariable, .variable = std::move(name)};
}
IntExpr IntExpr::SizeOf(int input, int64_t axis) {
  return {.kind = Kind::kSizeOf, .constant = axis, .input = input};
}
IntExpr IntExpr::SizeOf(int input, std::string axis_variable) {
  return {.kind = Kind::kSizeOf, .variable = std::move(axis_variable), .input = input};
}
IntExpr IntExpr::Product(std::string a, std::string b) {
  if (b < a) std::swap(a, b);
  return {.kind = Kind::kProduct, .variable = std::move(a), .factor = std::move(b)};
}

std::string IntExpr::ToString() const {
  switch (kind) {
    case Kind::kConstant:
      return absl::StrCat(constant);
    case Kind::kVariable:
      return variable;
    case Kind::kSizeOf:
      return absl::StrCat("size(x", input, ",",
                          variable.empty() ? absl::StrCat(constant) : variable, ")");
    case Kind::kProduct:
      return absl::StrCat(variable, "*", factor);
  }
  return "?";
}

namespace {

std::string NumberText(const NumberExpr& number) {
  if (number.variables.empty()) return AttributeText(number.constant);
  const std::string product = absl::StrJoin(number.variables, "*");
  return number.constant == 1 ? product
                              : absl::StrCat(AttributeText(number.constant), "*", product);
}

struct AttributePatternText {
  std::string operator()(const IntExpr& expr) const { return expr.ToString(); }
  std::string operator()(const NumberExpr& number) const { return NumberText(number); }
  std::string operator()(const std::vector<IntExpr>& list) const {
    return absl::StrCat(
        "[",
        absl::StrJoin(list, ",",
                      [](std::string* out, const IntExpr& e) { out->append(e.ToString()); }),
        "]");
  }
  std::string operator()(const SwapAxes& swap) const {
    return absl::StrCat("swap(", swap.a, ",", swap.b, ")");
  }
  std::string operator()(const AttributeVariable& variable) const { return variable.name; }
};

std::string AttributesText(const PatternNode& node) {
  return absl::StrJoin(node.attributes, ", ", [](std::string* out, const AttributePattern& a) {
    absl::StrAppend(out, a.name, "=", std::visit(AttributePatternText(), a.value));
  });
}

// `end`: only nodes before it may be named, so that an ill-formed pattern has a text too.
std::string RefText(const Pattern& pattern, PatternRef ref, int end) {
  if (ref.node < 0) return absl::StrCat("x", ref.index);
  if (ref.node >= end) return absl::StrCat("node", ref.node, "?");
  const PatternNode& node = pattern.nodes[ref.node];
  const std::string operands = absl::StrJoin(
      node.inputs, ", ",
      [&](std::string* out, PatternRef input) { out->append(RefText(pattern, input, ref.node)); });
  const std::string attributes = AttributesText(node);
  std::string text = absl::StrCat(OpName(node.kind), "(", operands, attributes.empty() ? "" : "; ",
                                  attributes, ")");
  if (node.kind == OpKind::kSplit) absl::StrAppend(&text, "#", ref.index);
  return text;
}

std::string PatternText(const Pattern& pattern) {
  if (pattern.outputs.size() == 1)
    return RefText(pattern, pattern.outputs[0], static_cast<int>(pattern.nodes.size()));
  return absl::StrCat(
      "{",
      absl::StrJoin(pattern.outputs, ", ",
                    [&](std::string* out, PatternRef ref) {
                      out->append(RefText(pattern, ref, static_cast<int>(pattern.nodes.size())));
                    }),
      "}");
}

std::string AxesText(const std::vector<std::optional<IntExpr>>& axes) {
  return absl::StrJoin(axes, ",", [](std::string* out, const std::optional<IntExpr>& axis) {
    out->append(axis.has_value() ? axis->ToString() : "-");
  });
}

const char* VariableKindName(VariableKind kind) {
  switch (kind) {
    case VariableKind::kAxis:
      return "axis";
    case VariableKind::kDegree:
      return "degree";
    case VariableKind::kSize:
      return "size";
    case VariableKind::kNumber:
      return "number";
    case VariableKind::kAttribute:
      return "attribute";
  }
  return "?";
}

}  // namespace

const char* VerdictName(ProofRecord::Verdict verdict) {
  switch (verdict) {
    case ProofRecord::Verdict::kNone:
      return "not tried";
    case ProofRecord::Verdict::kProved:
      return "proved";
    case ProofRecord::Verdict::kRefuted:
      return "refuted";
    case ProofRecord::Verdict::kUnknown:
      return "unknown";
    case ProofRecord::Verdict::kChecked:
      return "checked";
    case ProofRecord::Verdict::kCrashed:
      return "crashed";
  }
  return "?";
}

std::string OperatorText(const PatternNode& node) {
  return absl::StrCat(OpName(node.kind), "(", AttributesText(node), ")");
}

std::string Condition::ToString() const {
  switch (kind) {
    case Kind::kEqual:
      return absl::StrCat(left.ToString(), " == ", right.ToString());
    case Kind::kNotEqual:
      return absl::StrCat(left.ToString(), " != ", right.ToString());
    case Kind::kAtMost:
      return absl::StrCat(left.ToString(), " <= ", right.ToString());
    case Kind::kDivides:
      return absl::StrCat(left.ToString(), "*degree divides size(x", input, ",", right.ToString(),
                          ")");
    case Kind::kSameType:
      return absl::StrCat("type(x", input, ") == type(x", input_b, ")");
    case Kind::kNoPartials:
      return absl::StrCat("partials(x", input, ") == 1");
    case Kind::kUnpartitioned:
      return absl::StrCat("degree(x", input, ",", right.ToString(), ") == 1");
    case Kind::kByStructure:
      return "by_structure";
    case Kind::kSplitsDim:
      return absl::StrCat(left.ToString(), " splits dim (", AxesText(operand_axes), " -> ",
                          AxesText(output_axes), ") of source node ", node);
  }
  return "?";
}

bool HasCondition(const Rule& rule, Condition::Kind kind) {
  return std::any_of(rule.conditions.begin(), rule.conditions.end(),
                     [kind](const Condition& condition) { return condition.kind == kind; });
}

std::string Rule::ToString() const {
  std::string text =
      absl::StrCat(PatternText(source), reversible ? " <-> " : " -> ", PatternText(target));
  if (!conditions.empty()) {
    absl::StrAppend(&text, " if ",
                    absl::StrJoin(conditions, ", ", [](std::string* out, const Condition& c) {
                      out->append(c.ToString());
                    }));
  }
  return text;
}

// The text form is unambiguous but for Split's outputs and shared nodes, so the digest also covers
// the node lists.
uint64_t Rule::Digest() const {
  uint64_t hash = HashBytes(ToString(), HashCombine(num_inputs, reversible));
  for (const RuleVariable& variable : variables) {
    hash = HashBytes(absl::StrCat(VariableKindName(variable.kind), " ", variable.name), hash);
  }
  for (const std::vector<int>& vector : ranks) hash = HashBytes(absl::StrJoin(vector, ","), hash);
  for (const Pattern* side : {&source, &target}) {
    for (const PatternNode& node : side->nodes) {
      hash = HashCombine(hash, HashBytes(OpName(node.kind)));
      for (PatternRef ref : node.inputs) hash = HashCombine(hash, ref.node, ref.index);
    }
    for (PatternRef ref : side->outputs) hash = HashCombine(hash, ref.node, ref.index);
  }
  return hash;
}

void SetId(Rule* rule) { rule->id = absl::StrCat("r", DigestString(rule->Digest()).substr(0, 12)); }

Rule Inverse(const Rule& rule) {
  Rule inverse = rule;
  inverse.id = rule.id + "^-1";
  std::swap(inverse.source, inverse.target);
  return inverse;
}

uint64_t RuleSet::Digest() const {
  uint64_t hash = HashBytes("rules");
  for (const Rule& rule : rules) hash = HashCombine(hash, rule.Digest());
  return hash;
}

void RuleSet::BuildIndex() {
  inverses_.clear();
  index_.clear();
  for (size_t i = 0; i < rules.size(); ++i) {
    index_[rules[i].id] = {false, static_cast<int>(i)};
    if (!rules[i].reversible) continue;
    inverses_.push_back(Inverse(rules[i]));
    index_[inverses_.back().id] = {true, static_cast<int>(inverses_.size()) - 1};
  }
}

const Rule* RuleSet::Find(const std::string& id) const {
  const auto found = index_.find(id);
  if (found == index_.end()) return nullptr;
  const auto [inverse, place] = found->second;
  return inverse ? &inverses_[place] : &rules[place];
}

}  // namespace isomer
