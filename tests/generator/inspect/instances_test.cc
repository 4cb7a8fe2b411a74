// Counting instances: each once, whatever rules, names and directions it comes from.
#include "generator/inspect/instances.h"

#include <gtest/gtest.h>

#include "generator/inspect/kinds.h"
#include "tests/generator/inspect/small_rules.h"

namespace isomer {
namespace {

int64_t Added(InstanceCounter* counter, const Rule& rule) {
  TypeOracle oracle;
  return counter->Add(InstancesOf(rule, &oracle));
}

TEST(Instances, OnePerRankVectorOfARuleWithoutAxes) {
  InstanceCounter counter;
  EXPECT_EQ(Added(&counter, RowsRule()), 2);
}

TEST(Instances, OnePerAxisOfEachRank) {
  InstanceCounter counter;
  EXPECT_EQ(Added(&counter, ReluRule()), 1 + 2 + 3);
}

TEST(Instances, WhatAnotherRuleHasIsNotCountedAgain) {
  InstanceCounter counter;
  EXPECT_EQ(Added(&counter, ReluRule()), 6);
  EXPECT_EQ(Added(&counter, ReluRule()), 0);
  Rule constant = ReluRule();
  constant.variables.clear();
  for (Pattern* side : {&constant.source, &constant.target}) {
    for (PatternNode& node : side->nodes) {
      for (AttributePattern& attribute : node.attributes) {
        attribute.value = IntExpr::Constant(attribute.name == "axis" ? -1 : 2);
      }
    }
  }
  EXPECT_EQ(Added(&counter, constant), 0);
}

TEST(Instances, NamesOfInputsAndOrderOfCommutativeOperandsDoNotMatter) {
  InstanceCounter counter;
  EXPECT_EQ(Added(&counter, AddRule(false)), 1);
  EXPECT_EQ(Added(&counter, AddRule(true)), 0);
}

TEST(Instances, AReversibleRuleCoversBothDirections) {
  Rule rule = ReluRule();
  Rule inverse = Inverse(rule);
  InstanceCounter one_way;
  EXPECT_EQ(Added(&one_way, rule), 6);
  EXPECT_EQ(Added(&one_way, inverse), 6);
  rule.reversible = true;
  InstanceCounter both_ways;
  EXPECT_EQ(Added(&both_ways, rule), 6);
  EXPECT_EQ(Added(&both_ways, inverse), 0);
}

TEST(Instances, ThreadsDoNotMatter) {
  const std::vector<Rule> rules = {ReluRule(), RowsRule(), AddRule(true), ReluRule()};
  const std::vector<std::vector<Instance>> instances = InstancesOf(rules);
  TypeOracle oracle;
  for (size_t r = 0; r < rules.size(); ++r) {
    const std::vector<Instance> alone = InstancesOf(rules[r], &oracle);
    ASSERT_EQ(instances[r].size(), alone.size());
    for (size_t i = 0; i < alone.size(); ++i) EXPECT_EQ(instances[r][i].hash, alone[i].hash);
  }
}

TEST(Instances, ConditionsExclude) {
  Rule rule = ReluRule();
  rule.conditions = {{.kind = Condition::Kind::kNotEqual,
                      .left = IntExpr::Variable("i"),
                      .right = IntExpr::Constant(-1)}};
  InstanceCounter counter;
  EXPECT_EQ(Added(&counter, rule), 0 + 1 + 2);
  rule.conditions = {{.kind = Condition::Kind::kAtMost,
                      .left = IntExpr::Variable("d"),
                      .right = IntExpr::Constant(1)}};
  EXPECT_EQ(Added(&counter, rule), 0);
}

TEST(Instances, InputsMayHaveToBeParallel) {
  // combine(x0) needs an input that is partitioned.
  Rule rule = ReluRule();
  for (Pattern* side : {&rule.source, &rule.target}) {
    for (PatternNode& node : side->nodes) {
      if (node.kind == OpKind::kPartition) node.kind = OpKind::kCombine;
    }
  }
  InstanceCounter counter;
  EXPECT_EQ(Added(&counter, rule), 6);
}

TEST(Instances, HighRanksAreLeftOutUnlessThereAreNoOthers) {
  Rule rule = ReluRule();
  rule.ranks = {{1}, {5}};
  InstanceCounter counter;
  EXPECT_EQ(Added(&counter, rule), 1);
  rule.ranks = {{5}};
  EXPECT_EQ(Added(&counter, rule), 5);
}

TEST(Kinds, ByOperators) {
  EXPECT_EQ(KindOf(AddRule(false)), RuleKind::kAlgebra);
  EXPECT_EQ(KindOf(RowsRule()), RuleKind::kMixing);
  Rule moving = ReluRule();
  for (Pattern* side : {&moving.source, &moving.target}) {
    for (PatternNode& node : side->nodes) {
      if (node.kind == OpKind::kRelu)
        node = {OpKind::kReplicate, {{"degree", IntExpr::Variable("d")}}, node.inputs};
    }
  }
  EXPECT_EQ(KindOf(moving), RuleKind::kMoving);
}

TEST(Kinds, JointIsMoreThanPlacement) {
  EXPECT_FALSE(IsJoint(RowsRule()));
  EXPECT_FALSE(IsJoint(AddRule(false))) << "it has no parallel operators";
  Rule joint = ReluRule();
  joint.target.nodes.push_back(UnaryNode(OpKind::kRelu, PatternRef::Node(1)));
  joint.target.outputs = {PatternRef::Node(2)};
  EXPECT_TRUE(IsJoint(joint));
}

TEST(Kinds, PartialsSideBySideAreTheirSum) {
  // reduce(concat_partials(x0, x1)) -> add(x1, x0)
  Rule rule;
  rule.num_inputs = 2;
  rule.ranks = {{2, 2}};
  const PatternRef x0 = PatternRef::Input(0), x1 = PatternRef::Input(1);
  rule.source.nodes = {
      {OpKind::kConcatPartials, {}, {x0, x1}},
      {OpKind::kReduce, {{"degree", IntExpr::Constant(2)}}, {PatternRef::Node(0)}}};
  rule.source.outputs = {PatternRef::Node(1)};
  rule.target.nodes = {{OpKind::kAdd, {}, {x1, x0}}};
  rule.target.outputs = {PatternRef::Node(0)};
  EXPECT_FALSE(IsJoint(rule));
  EXPECT_EQ(OperatorsOf(rule).count(), 3u);
}

}  // namespace
}  // namespace isomer
