#include "verifier/families/family.h"

#include <algorithm>

namespace isomer {
namespace {

// The parallel operator of one operand that `ref` is, over what it is applied to; or null if `ref`
// itself is that.
const PatternNode* ParallelAt(const Pattern& pattern, PatternRef* ref) {
  if (ref->node < 0) return nullptr;
  const PatternNode& node = pattern.nodes[ref->node];
  const bool fits = node.kind == OpKind::kPartition || node.kind == OpKind::kCombine ||
                    node.kind == OpKind::kReplicate || node.kind == OpKind::kReduce;
  if (!fits) return nullptr;
  *ref = node.inputs[0];
  return &node;
}

const IntExpr* At(const std::vector<std::optional<IntExpr>>& axes, size_t i) {
  return i < axes.size() && axes[i] ? &*axes[i] : nullptr;
}

// The conditions of a family: kSplitsDim of its call at most once, kNoPartials.
bool ReadConditions(const Rule& rule, Family* family) {
  family->no_partials.assign(rule.num_inputs, false);
  for (const Condition& condition : rule.conditions) {
    if (condition.kind == Condition::Kind::kNoPartials) {
      family->no_partials[condition.input] = true;
    } else if (condition.kind == Condition::Kind::kSplitsDim && family->split == nullptr &&
               condition.node == family->source.node) {
      family->split = &condition;
    } else {
      return false;
    }
  }
  return true;
}

// All parallel operators have the same degree, a variable, which the condition speaks of too.
bool HasOneDegree(const Family& family) {
  const IntExpr* degree = nullptr;
  for (const FamilySide* side : {&family.source, &family.target}) {
    for (const auto* nodes : {&side->operands, &side->outputs}) {
      for (const PatternNode* node : *nodes) {
        if (node == nullptr) continue;
        const IntExpr* found = AttributeOf(*node, "degree");
        if (found == nullptr || (degree != nullptr && !(*found == *degree))) return false;
        degree = found;
      }
    }
  }
  if (degree == nullptr || degree->kind != IntExpr::Kind::kVariable) return false;
  return family.split == nullptr || family.split->left == *degree ||
         family.split->left == IntExpr::Constant(1);
}

}  // namespace

const IntExpr* AttributeOf(const PatternNode& node, const char* name) {
  for (const AttributePattern& attribute : node.attributes) {
    if (attribute.name == name) return std::get_if<IntExpr>(&attribute.value);
  }
  return nullptr;
}

const IntExpr* Family::OperandAxis(size_t o) const {
  return split == nullptr ? nullptr : At(split->operand_axes, o);
}

const IntExpr* Family::OutputAxis(size_t t) const {
  return split == nullptr ? nullptr : At(split->output_axes, static_cast<size_t>(source.which[t]));
}

std::optional<FamilySide> SideOf(const Rule& rule, const Pattern& pattern) {
  FamilySide side;
  for (size_t n = 0; n < pattern.nodes.size(); ++n) {
    if (IsParallel(pattern.nodes[n].kind)) continue;
    if (side.node >= 0) return std::nullopt;
    side.node = static_cast<int>(n);
  }
  if (side.node < 0) return std::nullopt;
  size_t parallel = 0;
  for (PatternRef ref : pattern.nodes[side.node].inputs) {
    side.operands.push_back(ParallelAt(pattern, &ref));
    parallel += side.operands.back() != nullptr;
    if (ref != PatternRef::Input(static_cast<int>(side.operands.size()) - 1)) return std::nullopt;
  }
  for (PatternRef ref : pattern.outputs) {
    side.outputs.push_back(ParallelAt(pattern, &ref));
    parallel += side.outputs.back() != nullptr;
    if (ref.node != side.node) return std::nullopt;
    side.which.push_back(ref.index);
  }
  const bool all = static_cast<int>(side.operands.size()) == rule.num_inputs &&
                   pattern.nodes.size() == parallel + 1;
  return all ? std::optional(side) : std::nullopt;
}

std::optional<Family> TakeApart(const Rule& rule) {
  const std::optional<FamilySide> source = SideOf(rule, rule.source),
                                  target = SideOf(rule, rule.target);
  if (!source || !target || source->which != target->which) return std::nullopt;
  Family family;
  family.source = *source;
  family.target = *target;
  family.call = &rule.source.nodes[source->node];
  const PatternNode& other = rule.target.nodes[target->node];
  if (other.kind != family.call->kind || other.attributes != family.call->attributes ||
      other.inputs.size() != family.call->inputs.size()) {
    return std::nullopt;
  }
  if (!ReadConditions(rule, &family) || !HasOneDegree(family)) return std::nullopt;
  for (int o = 0; o < rule.num_inputs; ++o) {
    auto reduces = [](const PatternNode* node) {
      return node != nullptr && node->kind == OpKind::kReduce;
    };
    family.reduced.push_back(reduces(source->operands[o]) || reduces(target->operands[o]));
  }
  return family;
}

}  // namespace isomer
