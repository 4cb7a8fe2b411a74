// Rules made by hand.
#ifndef ISOMER_TESTS_GENERATOR_INSPECT_SMALL_RULES_H_
#define ISOMER_TESTS_GENERATOR_INSPECT_SMALL_RULES_H_

#include <utility>

#include "rules/language/rule.h"

namespace isomer {

inline PatternNode UnaryNode(OpKind kind, PatternRef of) { return {kind, {}, {of}}; }
inline PatternNode PartitionNode(IntExpr axis, IntExpr degree, PatternRef of) {
  return {OpKind::kPartition, {{"axis", std::move(axis)}, {"degree", std::move(degree)}}, {of}};
}

// matmul(x0, x1) -> combine(matmul(partition(x0), replicate(x1))), along the rows.
inline Rule RowsRule() {
  Rule rule;
  rule.num_inputs = 2;
  rule.variables = {{"d", VariableKind::kDegree}};
  rule.ranks = {{2, 2}, {3, 2}};
  rule.conditions = {{.kind = Condition::Kind::kDivides,
                      .left = IntExpr::Variable("d"),
                      .right = IntExpr::Constant(-2),
                      .input = 0}};
  rule.source.nodes = {{OpKind::kMatMul, {}, {PatternRef::Input(0), PatternRef::Input(1)}}};
  rule.source.outputs = {PatternRef::Node(0)};
  const AttributePattern axis{"axis", IntExpr::Constant(-2)},
      degree{"degree", IntExpr::Variable("d")};
  rule.target.nodes = {{OpKind::kPartition, {axis, degree}, {PatternRef::Input(0)}},
                       {OpKind::kReplicate, {degree}, {PatternRef::Input(1)}},
                       {OpKind::kMatMul, {}, {PatternRef::Node(0), PatternRef::Node(1)}},
                       {OpKind::kCombine, {axis, degree}, {PatternRef::Node(2)}}};
  rule.target.outputs = {PatternRef::Node(3)};
  rule.origin = "test: by hand";
  rule.proof = {.verdict = ProofRecord::Verdict::kProved,
                .lemmas = {"combine_is_identity", "pieces_of_matmul_m"},
                .solver = "z3",
                .seconds = 0.5,
                .note = ""};
  SetId(&rule);
  return rule;
}

// relu(partition(x0; axis=i, degree=d)) -> partition(relu(x0); axis=i, degree=d) at ranks 1 to 3.
inline Rule ReluRule() {
  Rule rule;
  rule.num_inputs = 1;
  rule.variables = {{"i", VariableKind::kAxis}, {"d", VariableKind::kDegree}};
  rule.ranks = {{1}, {2}, {3}};
  const IntExpr i = IntExpr::Variable("i"), d = IntExpr::Variable("d");
  rule.source.nodes = {PartitionNode(i, d, PatternRef::Input(0)),
                       UnaryNode(OpKind::kRelu, PatternRef::Node(0))};
  rule.source.outputs = {PatternRef::Node(1)};
  rule.target.nodes = {UnaryNode(OpKind::kRelu, PatternRef::Input(0)),
                       PartitionNode(i, d, PatternRef::Node(0))};
  rule.target.outputs = {PatternRef::Node(1)};
  SetId(&rule);
  return rule;
}

// add(x0, relu(x1)) -> add(relu(x1), x0), which says nothing, at rank 2; `exchanged`: with the
// names of its inputs exchanged.
inline Rule AddRule(bool exchanged) {
  Rule rule;
  rule.num_inputs = 2;
  rule.ranks = {{2, 2}};
  const PatternRef a = PatternRef::Input(exchanged), b = PatternRef::Input(!exchanged);
  rule.source.nodes = {UnaryNode(OpKind::kRelu, b), {OpKind::kAdd, {}, {a, PatternRef::Node(0)}}};
  rule.source.outputs = {PatternRef::Node(1)};
  rule.target.nodes = {UnaryNode(OpKind::kRelu, b), {OpKind::kAdd, {}, {PatternRef::Node(0), a}}};
  rule.target.outputs = {PatternRef::Node(1)};
  SetId(&rule);
  return rule;
}

}  // namespace isomer

#endif  // ISOMER_TESTS_GENERATOR_INSPECT_SMALL_RULES_H_
