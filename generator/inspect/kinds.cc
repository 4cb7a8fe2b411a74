#include "generator/inspect/kinds.h"

#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "generator/inspect/drawing.h"

namespace isomer {
namespace {

// What a reference computes, parallel operators taken out.
std::string ErasedText(const Pattern& pattern, PatternRef ref) {
  while (ref.node >= 0 && IsParallel(pattern.nodes[ref.node].kind) &&
         pattern.nodes[ref.node].inputs.size() == 1) {
    ref = pattern.nodes[ref.node].inputs[0];
  }
  if (ref.node < 0) return absl::StrCat("x", ref.index);
  const PatternNode& node = pattern.nodes[ref.node];
  std::vector<std::string> operands;
  for (PatternRef input : node.inputs) operands.push_back(ErasedText(pattern, input));
  if (node.kind == OpKind::kConcatPartials) {
    std::string sum = operands[0];
    for (size_t o = 1; o < operands.size(); ++o) {
      sum = absl::StrCat("add<", std::min(sum, operands[o]), ";", std::max(sum, operands[o]), ">");
    }
    return sum;
  }
  if (node.kind == OpKind::kAdd || node.kind == OpKind::kMul) {
    std::sort(operands.begin(), operands.end());
  }
  return absl::StrCat(NodeText(node),
                      node.kind == OpKind::kSplit ? absl::StrCat("#", ref.index) : "", "<",
                      absl::StrJoin(operands, ";"), ">");
}

}  // namespace

OpKindSet OperatorsOf(const Rule& rule) {
  OpKindSet set;
  for (const Pattern* side : {&rule.source, &rule.target}) {
    for (const PatternNode& node : side->nodes) set.set(static_cast<size_t>(node.kind));
  }
  return set;
}

RuleKind KindOf(const Rule& rule) {
  bool parallel = false, computing = false;
  for (const Pattern* side : {&rule.source, &rule.target}) {
    for (const PatternNode& node : side->nodes) {
      (IsParallel(node.kind) ? parallel : computing) = true;
    }
  }
  return !parallel ? RuleKind::kAlgebra : computing ? RuleKind::kMixing : RuleKind::kMoving;
}

const char* RuleKindName(RuleKind kind) {
  switch (kind) {
    case RuleKind::kAlgebra:
      return "algebra";
    case RuleKind::kMixing:
      return "mixing";
    case RuleKind::kMoving:
      return "moving";
  }
  return "?";
}

bool IsJoint(const Rule& rule) {
  if (KindOf(rule) == RuleKind::kAlgebra) return false;
  for (size_t o = 0; o < rule.source.outputs.size(); ++o) {
    if (ErasedText(rule.source, rule.source.outputs[o]) !=
        ErasedText(rule.target, rule.target.outputs[o])) {
      return true;
    }
  }
  return false;
}

}  // namespace isomer
