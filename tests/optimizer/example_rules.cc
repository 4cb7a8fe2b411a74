#include "tests/optimizer/example_rules.h"

#include <algorithm>
#include <cstdio>
#include <set>
#include <string>
#include <utility>

#include "pcg/support/check.h"

namespace isomer {
namespace {

IntExpr Axis(int64_t axis) { return IntExpr::Constant(axis); }
IntExpr Var(const char* name) { return IntExpr::Variable(name); }

PatternNode Parallel(OpKind kind, std::optional<IntExpr> axis, PatternRef input,
                     const char* degree = "d") {
  PatternNode node{kind, {}, {input}};
  if (axis.has_value()) node.attributes.push_back({"axis", *axis});
  node.attributes.push_back({"degree", Var(degree)});
  return node;
}

Rule ExpansionRule(const Operator& op, const std::vector<TensorType>& operands,
                   const SplittableDim& dim, int num_outputs) {
  Rule rule;
  rule.num_inputs = static_cast<int>(operands.size());
  rule.ranks.emplace_back();
  for (const TensorType& type : operands) rule.ranks[0].push_back(type.rank());
  rule.variables.push_back({"d", VariableKind::kDegree});
  PatternNode call{op.kind(), {}, {}};
  for (const Attribute& attribute : op.attributes()) {
    const std::string name = "attribute_" + attribute.name;
    call.attributes.push_back({attribute.name, AttributeVariable{name}});
    rule.variables.push_back({name, VariableKind::kAttribute});
  }
  PatternNode inner = call;
  for (int o = 0; o < rule.num_inputs; ++o) {
    call.inputs.push_back(PatternRef::Input(o));
    const auto& axis = dim.operand_axes[o];
    rule.target.nodes.push_back(Parallel(axis ? OpKind::kPartition : OpKind::kReplicate,
                                         axis ? std::optional(Axis(*axis)) : std::nullopt,
                                         PatternRef::Input(o)));
    inner.inputs.push_back(PatternRef::Node(o));
  }
  rule.source.nodes.push_back(call);
  rule.target.nodes.push_back(inner);
  for (int t = 0; t < num_outputs; ++t) {
    rule.source.outputs.push_back(PatternRef::Node(0, t));
    const auto& axis = dim.output_axes[t];
    rule.target.nodes.push_back(Parallel(axis ? OpKind::kCombine : OpKind::kReduce,
                                         axis ? std::optional(Axis(*axis)) : std::nullopt,
                                         PatternRef::Node(rule.num_inputs, t)));
    rule.target.outputs.push_back(PatternRef::Node(rule.num_inputs + 1 + t));
  }
  Condition condition;
  condition.kind = Condition::Kind::kSplitsDim;
  condition.left = Var("d");
  condition.node = 0;
  for (const auto& axis : dim.operand_axes) {
    condition.operand_axes.push_back(axis ? std::optional(Axis(*axis)) : std::nullopt);
  }
  for (const auto& axis : dim.output_axes) {
    condition.output_axes.push_back(axis ? std::optional(Axis(*axis)) : std::nullopt);
  }
  rule.conditions.push_back(condition);
  return rule;
}

Rule ChainRule(std::vector<PatternNode> source, std::vector<PatternNode> target) {
  Rule rule;
  rule.num_inputs = 1;
  rule.ranks = {{0}, {1}, {2}, {3}, {4}, {5}};
  rule.source = {std::move(source), {PatternRef::Node(1)}};
  rule.target = {std::move(target), {}};
  rule.target.outputs.push_back(rule.target.nodes.empty() ? PatternRef::Input(0)
                                                          : PatternRef::Node(1));
  std::set<std::string> names;
  for (const PatternNode& node : rule.source.nodes) {
    for (const AttributePattern& attribute : node.attributes) {
      const std::string& name = std::get<IntExpr>(attribute.value).variable;
      if (!names.insert(name).second) continue;
      rule.variables.push_back(
          {name, attribute.name == "axis" ? VariableKind::kAxis : VariableKind::kDegree});
    }
  }
  if (names.count("a") > 0) std::erase(rule.ranks, std::vector<int>{0});
  return rule;
}

std::vector<Rule> ChainRules() {
  std::vector<Rule> rules;
  const PatternRef x = PatternRef::Input(0), n0 = PatternRef::Node(0);
  const OpKind p = OpKind::kPartition, c = OpKind::kCombine;
  const OpKind rep = OpKind::kReplicate, red = OpKind::kReduce;
  rules.push_back(ChainRule({Parallel(c, Var("a"), x), Parallel(p, Var("a"), n0)}, {}));
  // Two axes that differ commute, whatever is done to them.
  for (OpKind first : {c, p}) {
    for (OpKind second : {c, p}) {
      Rule rule = ChainRule({Parallel(first, Var("a"), x), Parallel(second, Var("b"), n0, "e")},
                            {Parallel(second, Var("b"), x, "e"), Parallel(first, Var("a"), n0)});
      Condition differ;
      differ.kind = Condition::Kind::kNotEqual;
      differ.left = Var("a");
      differ.right = Var("b");
      rule.conditions.push_back(differ);
      rules.push_back(rule);
    }
  }
  for (OpKind dims : {c, p}) {
    for (OpKind other : {rep, red}) {
      rules.push_back(ChainRule({Parallel(dims, Var("a"), x), Parallel(other, {}, n0, "e")},
                                {Parallel(other, {}, x, "e"), Parallel(dims, Var("a"), n0)}));
      rules.push_back(ChainRule({Parallel(other, {}, x, "e"), Parallel(dims, Var("a"), n0)},
                                {Parallel(dims, Var("a"), x), Parallel(other, {}, n0, "e")}));
    }
  }
  return rules;
}

// matmul(x, y), matmul(x, z) -> split(matmul(x, concat(y, z)))
Rule MergeProducts() {
  Rule rule;
  rule.num_inputs = 3;
  rule.ranks = {{2, 2, 2}, {3, 2, 2}};
  const PatternRef x = PatternRef::Input(0), y = PatternRef::Input(1), z = PatternRef::Input(2);
  rule.source.nodes = {{OpKind::kMatMul, {}, {x, y}}, {OpKind::kMatMul, {}, {x, z}}};
  rule.source.outputs = {PatternRef::Node(0), PatternRef::Node(1)};
  PatternNode concat{OpKind::kConcat, {{"axis", Axis(-1)}}, {y, z}};
  PatternNode product{OpKind::kMatMul, {}, {x, PatternRef::Node(0)}};
  PatternNode split{OpKind::kSplit,
                    {{"axis", Axis(-1)},
                     {"sizes", std::vector<IntExpr>{IntExpr::SizeOf(1, int64_t{-1}),
                                                    IntExpr::SizeOf(2, int64_t{-1})}}},
                    {PatternRef::Node(1)}};
  rule.target.nodes = {concat, product, split};
  rule.target.outputs = {PatternRef::Node(2, 0), PatternRef::Node(2, 1)};
  return rule;
}

// scale(matmul(x, y)) -> matmul(scale(x), y)
Rule ScaleOverProduct() {
  Rule rule;
  rule.num_inputs = 2;
  rule.ranks = {{2, 2}, {3, 3}, {4, 4}};
  rule.variables = {{"s", VariableKind::kNumber}};
  const PatternRef x = PatternRef::Input(0), y = PatternRef::Input(1);
  const AttributePattern factor = {"factor", NumberExpr{1, {"s"}}};
  rule.source.nodes = {{OpKind::kMatMul, {}, {x, y}},
                       {OpKind::kScale, {factor}, {PatternRef::Node(0)}}};
  rule.source.outputs = {PatternRef::Node(1)};
  rule.target.nodes = {{OpKind::kScale, {factor}, {x}},
                       {OpKind::kMatMul, {}, {PatternRef::Node(0), y}}};
  rule.target.outputs = {PatternRef::Node(1)};
  return rule;
}

}  // namespace

RuleSet ExampleRules(const Graph& graph) {
  RuleSet set;
  std::set<std::string> ids;
  auto add = [&](Rule rule) {
    rule.proof.verdict = ProofRecord::Verdict::kProved;
    SetId(&rule);
    const absl::Status valid = ValidateRule(rule);
    if (!valid.ok()) std::fprintf(stderr, "%s\n", std::string(valid.message()).c_str());
    ISOMER_CHECK(valid.ok());
    if (ids.insert(rule.id).second) set.rules.push_back(std::move(rule));
  };
  for (int i = 0; i < graph.num_nodes(); ++i) {
    const Node& node = graph.node(i);
    if (IsLeaf(node.op.kind())) continue;
    std::vector<TensorType> operands;
    for (TensorRef input : node.inputs) operands.push_back(graph.type(input));
    for (const SplittableDim& dim : SplittableDims(node.op, operands)) {
      add(ExpansionRule(node.op, operands, dim, static_cast<int>(node.outputs.size())));
    }
  }
  for (Rule& rule : ChainRules()) add(std::move(rule));
  add(MergeProducts());
  add(ScaleOverProduct());
  // Merged products are split like the others; their Split in the batch dims.
  for (int rank : {2, 3}) {
    const std::vector<TensorType> merged = {
        SequentialType(std::vector<int64_t>(static_cast<size_t>(rank), 8))};
    Operator split(OpKind::kSplit, {{"axis", int64_t{-1}}, {"sizes", std::vector<Extent>{4, 4}}});
    for (const SplittableDim& dim : SplittableDims(split, merged)) {
      add(ExpansionRule(split, merged, dim, 2));
    }
  }
  set.BuildIndex();
  return set;
}

}  // namespace isomer
