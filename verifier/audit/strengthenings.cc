#include "verifier/audit/strengthenings.h"

#include <algorithm>
#include <set>
#include <utility>

namespace isomer {
namespace {

bool HasKind(const Pattern& pattern, OpKind kind) {
  return std::any_of(pattern.nodes.begin(), pattern.nodes.end(),
                     [&](const PatternNode& node) { return node.kind == kind; });
}

// Degrees that the target divides by, at any axis of an input that has it.
Conditions Divisibilities(const Rule& rule) {
  std::set<std::pair<int64_t, int64_t>> cuts;  // axis, degree
  for (const PatternNode& node : rule.target.nodes) {
    if (node.kind != OpKind::kPartition) continue;
    int64_t axis = 0, degree = 1;
    for (const AttributePattern& attribute : node.attributes) {
      const auto* expr = std::get_if<IntExpr>(&attribute.value);
      if (expr != nullptr) (attribute.name == "axis" ? axis : degree) = expr->constant;
    }
    cuts.insert({axis, degree});
  }
  Conditions result;
  for (const auto& [axis, degree] : cuts) {
    for (int x = 0; x < rule.num_inputs; ++x) {
      if (rule.ranks[0][x] + axis < 0) continue;
      result.push_back(
          {Condition::Kind::kDivides, IntExpr::Constant(degree), IntExpr::Constant(axis), x});
    }
  }
  return result;
}

// That inputs which differ along one axis do not: what is true of tensors of one size each, as
// those are that rules are found on.
Conditions EqualSizes(const Translation& translation) {
  Conditions result;
  const std::vector<Shape>& shapes = translation.input_shapes;
  for (int x = 0; x < static_cast<int>(shapes.size()); ++x) {
    for (int y = x + 1; y < static_cast<int>(shapes.size()); ++y) {
      if (shapes[x].size() != shapes[y].size()) continue;
      std::vector<int64_t> differ;
      for (size_t i = 0; i < shapes[x].size(); ++i) {
        if (shapes[x][i] == shapes[y][i]) continue;
        differ.push_back(static_cast<int64_t>(i) - static_cast<int64_t>(shapes[x].size()));
      }
      if (differ.size() != 1) continue;
      result.push_back(
          {Condition::Kind::kEqual, IntExpr::SizeOf(y, differ[0]), IntExpr::SizeOf(x, differ[0])});
    }
  }
  return result;
}

}  // namespace

std::vector<Conditions> Strengthenings(const Translation& translation) {
  const Rule& rule = translation.rule;
  std::vector<Conditions> groups = {translation.shapes, Divisibilities(rule),
                                    EqualSizes(translation)};
  Conditions whole, same, unpartitioned;
  for (int x = 0; x < rule.num_inputs; ++x) {
    whole.push_back({Condition::Kind::kNoPartials, {}, {}, x});
    for (int y = x + 1; y < rule.num_inputs; ++y) {
      if (translation.input_shapes[x] != translation.input_shapes[y]) continue;
      same.push_back({Condition::Kind::kSameType, {}, {}, x, y});
    }
    for (int64_t axis = -rule.ranks[0][x]; axis < 0; ++axis) {
      unpartitioned.push_back({Condition::Kind::kUnpartitioned, {}, IntExpr::Constant(axis), x});
    }
  }
  if (!HasKind(rule.source, OpKind::kReduce)) groups.push_back(std::move(whole));
  if (!HasKind(rule.source, OpKind::kCombine)) groups.push_back(std::move(unpartitioned));
  groups.push_back(std::move(same));
  return groups;
}

}  // namespace isomer
