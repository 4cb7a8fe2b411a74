#include "verifier/mutation/pattern_changes.h"

#include <algorithm>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"

namespace isomer {
namespace {

// An operator of the same operands and attributes.
std::vector<OpKind> Siblings(OpKind kind) {
  switch (kind) {
    case OpKind::kAdd:
      return {OpKind::kSub, OpKind::kMul};
    case OpKind::kSub:
      return {OpKind::kAdd};
    case OpKind::kMul:
      return {OpKind::kDiv, OpKind::kAdd};
    case OpKind::kDiv:
      return {OpKind::kMul};
    case OpKind::kMaximum:
      return {OpKind::kMinimum};
    case OpKind::kMinimum:
      return {OpKind::kMaximum};
    case OpKind::kLess:
      return {OpKind::kLessEqual};
    case OpKind::kLessEqual:
      return {OpKind::kEqual};
    case OpKind::kRelu:
      return {OpKind::kAbs, OpKind::kGelu};
    case OpKind::kGelu:
    case OpKind::kTanh:
    case OpKind::kExp:
      return {OpKind::kRelu, OpKind::kSigmoid};
    case OpKind::kSigmoid:
      return {OpKind::kTanh};
    case OpKind::kReduceSum:
      return {OpKind::kReduceMean, OpKind::kReduceMax};
    case OpKind::kReduceMean:
      return {OpKind::kReduceSum};
    case OpKind::kReduceMax:
      return {OpKind::kReduceMin};
    case OpKind::kSoftmax:
      return {OpKind::kLogSoftmax};
    case OpKind::kPartition:
      return {OpKind::kCombine};
    case OpKind::kCombine:
      return {OpKind::kPartition};
    case OpKind::kReplicate:
      return {OpKind::kReduce};
    case OpKind::kReduce:
      return {OpKind::kReplicate};
    default:
      return {};
  }
}

class Changes {
 public:
  explicit Changes(const Rule& rule) : rule_(rule) {}

  std::vector<ChangedRule> Run() {
    for (size_t n = 0; n < rule_.target.nodes.size(); ++n) {
      ChangeKind(n);
      ChangeOperands(n);
      for (size_t a = 0; a < rule_.target.nodes[n].attributes.size(); ++a) ChangeAttribute(n, a);
      LeaveOut(n);
      Double(n);
      ExchangeWithConsumer(n);
    }
    ChangeOutputs();
    for (size_t c = 0; c < rule_.conditions.size(); ++c) {
      Rule changed = rule_;
      changed.conditions.erase(changed.conditions.begin() + static_cast<int64_t>(c));
      Keep(absl::StrCat("condition ", rule_.conditions[c].ToString(), " dropped"), changed);
    }
    return std::move(found_);
  }

 private:
  void Keep(const std::string& change, Rule changed) {
    SetId(&changed);
    changed.proof = {};
    if (!ValidateRule(changed).ok() || !seen_.insert(changed.id).second) return;
    if (changed.id == rule_.id) return;
    found_.push_back({change, std::move(changed)});
  }

  std::string Label(size_t n) const {
    return absl::StrCat("node ", n, " (", OpName(rule_.target.nodes[n].kind), ")");
  }

  void KeepNode(size_t n, const std::string& change, PatternNode node) {
    Rule changed = rule_;
    changed.target.nodes[n] = std::move(node);
    Keep(absl::StrCat(Label(n), ": ", change), std::move(changed));
  }

  void ChangeKind(size_t n) {
    const PatternNode& node = rule_.target.nodes[n];
    for (OpKind other : Siblings(node.kind)) {
      PatternNode changed = node;
      changed.kind = other;
      KeepNode(n, absl::StrCat(OpName(other), " for ", OpName(node.kind)), changed);
    }
    if (node.kind == OpKind::kCombine || node.kind == OpKind::kPartition) {
      PatternNode changed = node;  // The classic: pieces taken for partial sums, and copies.
      changed.kind = node.kind == OpKind::kCombine ? OpKind::kReduce : OpKind::kReplicate;
      std::erase_if(changed.attributes,
                    [](const AttributePattern& attribute) { return attribute.name == "axis"; });
      KeepNode(n, absl::StrCat(OpName(changed.kind), " for ", OpName(node.kind)), changed);
    }
    if (node.kind == OpKind::kReduce || node.kind == OpKind::kReplicate) {
      PatternNode changed = node;
      changed.kind = node.kind == OpKind::kReduce ? OpKind::kCombine : OpKind::kPartition;
      changed.attributes.insert(changed.attributes.begin(), {"axis", IntExpr::Constant(-1)});
      KeepNode(n, absl::StrCat(OpName(changed.kind), " for ", OpName(node.kind)), changed);
    }
  }

  void ChangeOperands(size_t n) {
    const PatternNode& node = rule_.target.nodes[n];
    for (size_t i = 0; i + 1 < node.inputs.size(); ++i) {
      PatternNode changed = node;
      std::swap(changed.inputs[i], changed.inputs[i + 1]);
      KeepNode(n, absl::StrCat("operands ", i, " and ", i + 1, " exchanged"), changed);
    }
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      for (int x = 0; x < rule_.num_inputs; ++x) {
        PatternNode changed = node;
        changed.inputs[i] = PatternRef::Input(x);
        KeepNode(n, absl::StrCat("operand ", i, " is x", x), changed);
      }
      if (node.inputs[i].node < 0) continue;
      PatternNode changed = node;
      changed.inputs[i].index = node.inputs[i].index == 0 ? 1 : 0;
      KeepNode(n, absl::StrCat("operand ", i, " is output ", changed.inputs[i].index), changed);
    }
  }

  // Expressions near `e`.
  std::vector<IntExpr> Near(const IntExpr& e) const {
    std::vector<IntExpr> near;
    switch (e.kind) {
      case IntExpr::Kind::kConstant:
        near = {IntExpr::Constant(e.constant + 1), IntExpr::Constant(e.constant - 1),
                IntExpr::Constant(e.constant * 2)};
        break;
      case IntExpr::Kind::kVariable:
        for (const RuleVariable& variable : rule_.variables) {
          if (variable.kind == VariableKind::kAxis || variable.kind == VariableKind::kDegree ||
              variable.kind == VariableKind::kSize) {
            if (variable.name != e.variable) near.push_back(IntExpr::Variable(variable.name));
          }
        }
        near.push_back(IntExpr::Constant(-1));
        near.push_back(IntExpr::Product(e.variable, e.variable));
        break;
      case IntExpr::Kind::kSizeOf:
        for (int x = 0; x < rule_.num_inputs; ++x) {
          IntExpr other = e;
          other.input = x;
          if (x != e.input) near.push_back(other);
        }
        break;
      case IntExpr::Kind::kProduct:
        near = {IntExpr::Variable(e.variable), IntExpr::Variable(e.factor)};
        break;
    }
    return near;
  }

  void ChangeAttribute(size_t n, size_t a) {
    const PatternNode& node = rule_.target.nodes[n];
    const AttributePattern& attribute = node.attributes[a];
    auto keep = [&](const AttributePatternValue& value, const std::string& text) {
      PatternNode changed = node;
      changed.attributes[a].value = value;
      KeepNode(n, absl::StrCat(attribute.name, " ", text), changed);
    };
    if (const auto* e = std::get_if<IntExpr>(&attribute.value)) {
      for (const IntExpr& other : Near(*e)) keep(other, "= " + other.ToString());
    } else if (const auto* number = std::get_if<NumberExpr>(&attribute.value)) {
      NumberExpr other = *number;
      other.constant *= 2;
      keep(other, "doubled");
      other.constant = -number->constant;
      keep(other, "negated");
      for (size_t f = 0; f < number->variables.size(); ++f) {
        other = *number;
        other.variables.erase(other.variables.begin() + static_cast<int64_t>(f));
        keep(other, "without " + number->variables[f]);
      }
    } else if (const auto* list = std::get_if<std::vector<IntExpr>>(&attribute.value)) {
      if (list->size() > 1) {
        std::vector<IntExpr> other = *list;
        std::swap(other[0], other[1]);
        keep(other, "in another order");
      }
      for (size_t i = 0; i < list->size(); ++i) {
        for (const IntExpr& near : Near((*list)[i])) {
          std::vector<IntExpr> other = *list;
          other[i] = near;
          keep(other, absl::StrCat("[", i, "] = ", near.ToString()));
        }
      }
    } else if (const auto* swap = std::get_if<SwapAxes>(&attribute.value)) {
      keep(SwapAxes{swap->a - 1, swap->b}, "of other axes");
      if (swap->b - swap->a > 1) keep(SwapAxes{swap->a + 1, swap->b}, "of nearer axes");
    } else if (const auto* whole = std::get_if<AttributeVariable>(&attribute.value)) {
      for (const RuleVariable& variable : rule_.variables) {
        if (variable.kind != VariableKind::kAttribute || variable.name == whole->name) continue;
        keep(AttributeVariable{variable.name}, "= " + variable.name);
      }
    }
  }

  // A pattern of these nodes of `target_`, in this order, each with its number there (copies have
  // numbers of their own).
  struct Numbered {
    int number;
    PatternNode node;
  };
  void KeepNodes(const std::string& change, const std::vector<Numbered>& nodes,
                 const std::vector<PatternRef>& outputs) {
    auto renumbered = [&](PatternRef ref) {
      if (ref.node < 0) return ref;
      for (size_t i = 0; i < nodes.size(); ++i) {
        if (nodes[i].number == ref.node) return PatternRef::Node(static_cast<int>(i), ref.index);
      }
      return ref;
    };
    Rule changed = rule_;
    changed.target.nodes.clear();
    for (const Numbered& numbered : nodes) {
      changed.target.nodes.push_back(numbered.node);
      for (PatternRef& ref : changed.target.nodes.back().inputs) ref = renumbered(ref);
    }
    changed.target.outputs = outputs;
    for (PatternRef& ref : changed.target.outputs) ref = renumbered(ref);
    Keep(change, std::move(changed));
  }

  // All nodes, with uses of `from` replaced by `to`.
  std::pair<std::vector<Numbered>, std::vector<PatternRef>> Redirected(PatternRef from,
                                                                       PatternRef to) const {
    std::vector<Numbered> nodes;
    for (size_t n = 0; n < rule_.target.nodes.size(); ++n) {
      nodes.push_back({static_cast<int>(n), rule_.target.nodes[n]});
      std::replace(nodes.back().node.inputs.begin(), nodes.back().node.inputs.end(), from, to);
    }
    std::vector<PatternRef> outputs = rule_.target.outputs;
    std::replace(outputs.begin(), outputs.end(), from, to);
    return {std::move(nodes), std::move(outputs)};
  }

  void LeaveOut(size_t n) {
    const PatternNode& node = rule_.target.nodes[n];
    if (node.kind == OpKind::kSplit) return;
    for (size_t i = 0; i < node.inputs.size() && i < 2; ++i) {
      auto [nodes, outputs] = Redirected(PatternRef::Node(static_cast<int>(n)), node.inputs[i]);
      nodes.erase(nodes.begin() + static_cast<int64_t>(n));
      KeepNodes(absl::StrCat(Label(n), " dropped, its operand ", i, " taken"), nodes, outputs);
    }
  }

  void Double(size_t n) {
    PatternNode again = rule_.target.nodes[n];
    if (again.kind == OpKind::kSplit) return;
    constexpr int kCopy = 1000;
    auto [nodes, outputs] =
        Redirected(PatternRef::Node(static_cast<int>(n)), PatternRef::Node(kCopy));
    again.inputs[0] = PatternRef::Node(static_cast<int>(n));
    nodes.insert(nodes.begin() + static_cast<int64_t>(n) + 1, {kCopy, again});
    KeepNodes(absl::StrCat(Label(n), " doubled"), nodes, outputs);
  }

  // g(.., f(x), ..) becomes f(g(.., x, ..)): Reduce commuted with Relu, and its like.
  void ExchangeWithConsumer(size_t n) {
    const PatternNode& inner = rule_.target.nodes[n];
    const PatternRef made = PatternRef::Node(static_cast<int>(n));
    if (inner.inputs.size() != 1 || inner.kind == OpKind::kSplit) return;
    for (size_t m = n + 1; m < rule_.target.nodes.size(); ++m) {
      const PatternNode& outer = rule_.target.nodes[m];
      if (outer.kind == OpKind::kSplit ||
          std::find(outer.inputs.begin(), outer.inputs.end(), made) == outer.inputs.end()) {
        continue;
      }
      const PatternRef result = PatternRef::Node(static_cast<int>(m));
      constexpr int kInner = 1000;
      auto [nodes, outputs] = Redirected(result, PatternRef::Node(kInner));
      PatternNode& below = nodes[m].node;
      std::replace(below.inputs.begin(), below.inputs.end(), made, inner.inputs[0]);
      PatternNode above = inner;
      above.inputs[0] = result;
      nodes.insert(nodes.begin() + static_cast<int64_t>(m) + 1, {kInner, above});
      const bool used = std::any_of(nodes.begin() + static_cast<int64_t>(n) + 1, nodes.end(),
                                    [&](const Numbered& other) {
                                      const auto& in = other.node.inputs;
                                      return std::find(in.begin(), in.end(), made) != in.end();
                                    }) ||
                        std::find(outputs.begin(), outputs.end(), made) != outputs.end();
      if (!used) nodes.erase(nodes.begin() + static_cast<int64_t>(n));
      KeepNodes(absl::StrCat(Label(n), " exchanged with ", Label(m)), nodes, outputs);
    }
  }

  void ChangeOutputs() {
    for (size_t o = 0; o + 1 < rule_.target.outputs.size(); ++o) {
      Rule changed = rule_;
      std::swap(changed.target.outputs[o], changed.target.outputs[o + 1]);
      Keep(absl::StrCat("outputs ", o, " and ", o + 1, " exchanged"), changed);
    }
    for (size_t o = 0; o < rule_.target.outputs.size(); ++o) {
      const PatternRef ref = rule_.target.outputs[o];
      if (ref.node < 0) continue;
      Rule changed = rule_;
      changed.target.outputs[o].index = ref.index == 0 ? 1 : 0;
      Keep(absl::StrCat("output ", o, " is another of its node"), changed);
    }
  }

  const Rule& rule_;
  std::vector<ChangedRule> found_;
  std::set<std::string> seen_;
};

}  // namespace

std::vector<ChangedRule> ChangesOf(const Rule& rule) { return Changes(rule).Run(); }

}  // namespace isomer
