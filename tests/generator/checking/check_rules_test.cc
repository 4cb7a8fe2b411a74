// The numeric check of rules: passes what is true, catches what is false in types, in values, and
// in gradients alone.
#include "generator/checking/check_rules.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "generator/checking/check_command.h"
#include "tests/generator/shipped_rules.h"

namespace isomer {
namespace {

PatternNode Scale(double factor, PatternRef x) {
  return {OpKind::kScale, {{"factor", NumberExpr{factor, {}}}}, {x}};
}
PatternNode Replicate(PatternRef x) {
  return {OpKind::kReplicate, {{"degree", IntExpr::Variable("d")}}, {x}};
}
PatternNode Reduce(PatternRef x) {
  return {OpKind::kReduce, {{"degree", IntExpr::Variable("d")}}, {x}};
}
const PatternRef x0 = PatternRef::Input(0), x1 = PatternRef::Input(1);
PatternRef At(int node) { return PatternRef::Node(node); }

Rule RuleOf(int num_inputs, std::vector<PatternNode> source, std::vector<PatternNode> target) {
  Rule rule;
  rule.num_inputs = num_inputs;
  rule.ranks = {std::vector<int>(num_inputs, 2)};
  rule.source = {source, {At(static_cast<int>(source.size()) - 1)}};
  rule.target = {target, {target.empty() ? x0 : At(static_cast<int>(target.size()) - 1)}};
  for (const PatternNode& node : source) {
    if (IsParallel(node.kind)) rule.variables = {{"d", VariableKind::kDegree}};
  }
  SetId(&rule);
  return rule;
}

RuleCheck Check(const Rule& rule, int instances = 50) {
  TypeOracle oracle;
  ShardedCalls calls;
  return CheckRule(rule, {.instances = instances}, &oracle, &calls);
}

TEST(CheckRules, SampleOfTheShippedRulesPasses) {
  const std::vector<Rule>& all = ShippedRules().rules;
  constexpr size_t kRules = 60;
  std::vector<Rule> sample;
  for (size_t i = 0; i < kRules; ++i) sample.push_back(all[i * all.size() / kRules]);
  int differentiated = 0, untried = 0;
  for (const RuleCheck& check : CheckRules(sample, {.instances = 40, .jobs = 2}, [] {})) {
    EXPECT_EQ(check.failure, "") << check.ToString();
    untried += check.instances == 0;
    EXPECT_LT(check.forward, 1e-10) << check.ToString();
    differentiated += check.gradients == RuleCheck::Gradient::kChecked;
  }
  EXPECT_GT(differentiated, 40);
  EXPECT_LE(untried, 3);  // A few shapes are too intricate to be drawn.
}

TEST(CheckRules, ForgottenReplicateIsCaught) {
  const std::vector<PatternNode> source = {Reduce(x0), {OpKind::kMatMul, {}, {At(0), x1}}};
  Rule good = RuleOf(2, source, {Replicate(x1), {OpKind::kMatMul, {}, {x0, At(0)}}, Reduce(At(1))});
  good.conditions = {{.kind = Condition::Kind::kNoPartials, .input = 1}};
  EXPECT_EQ(Check(good).failure, "");
  Rule bad = good;
  bad.target = {{{OpKind::kMatMul, {}, {x0, x1}}, Reduce(At(0))}, {At(1)}};
  EXPECT_NE(Check(bad).failure, "");
}

// The values are the same; the copies, and so the shares of the gradient, are not.
TEST(CheckRules, ForgottenLastReplicateIsCaught) {
  const Rule good = RuleOf(1, {{OpKind::kRelu, {}, {x0}}, Replicate(At(0))},
                           {Replicate(x0), {OpKind::kRelu, {}, {At(0)}}});
  EXPECT_EQ(Check(good).failure, "");
  Rule bad = good;
  bad.target = {{{OpKind::kRelu, {}, {x0}}}, {At(0)}};
  EXPECT_NE(Check(bad).failure.find("types differ"), std::string::npos) << Check(bad).failure;
}

TEST(CheckRules, WrongValuesAreCaught) {
  const std::vector<PatternNode> difference = {{OpKind::kSub, {}, {x0, x1}}};
  EXPECT_NE(Check(RuleOf(2, difference, {{OpKind::kSub, {}, {x1, x0}}})).failure, "");
  const std::vector<PatternNode> relu = {{OpKind::kRelu, {}, {x0}}};
  EXPECT_NE(Check(RuleOf(1, relu, {})).failure, "");
  const Rule doubled = RuleOf(1, {{OpKind::kAdd, {}, {x0, x0}}}, {Scale(2, x0)});
  EXPECT_EQ(Check(doubled).failure, "");
  EXPECT_NE(Check(RuleOf(1, {{OpKind::kAdd, {}, {x0, x0}}}, {Scale(2 + 1e-8, x0)})).failure, "");
}

// x + 1e-12 sin(1e12 x) is x but for its gradient.
TEST(CheckRules, WrongGradientOfRightValuesIsSeen) {
  const Rule rule = RuleOf(1, {Scale(2, x0)},
                           {Scale(2, x0),
                            Scale(1e12, x0),
                            {OpKind::kSin, {}, {At(1)}},
                            Scale(1e-12, At(2)),
                            {OpKind::kAdd, {}, {At(0), At(3)}}});
  Binding binding;
  binding.inputs = {*ParseTensorType("f32[4:2,4] c2")};
  ShardedCalls calls;
  const auto differences = Compare(rule, binding, 1, &calls);
  ASSERT_TRUE(differences.ok()) << differences.status();
  EXPECT_LT(differences->forward, 1e-9);
  EXPECT_GT(differences->gradient, 0.01);
  EXPECT_TRUE(differences->has_gradient);
}

TEST(CheckRules, GradientsThatAreZeroOrNoneAreSaid) {
  const PatternNode floor{OpKind::kFloor, {}, {x0}};
  const RuleCheck zero = Check(RuleOf(1, {Scale(1, x0), {OpKind::kFloor, {}, {At(0)}}}, {floor}));
  EXPECT_EQ(zero.failure, "");
  EXPECT_EQ(zero.gradients, RuleCheck::Gradient::kZero);
  const PatternNode less{OpKind::kLess, {}, {x0, x1}};
  const RuleCheck none = Check(RuleOf(2, {less}, {less}));
  EXPECT_EQ(none.failure, "");
  EXPECT_EQ(none.gradients, RuleCheck::Gradient::kNone);
}

TEST(CheckRules, LogarithmsAreTakenOfPositiveNumbers) {
  const std::vector<PatternNode> log = {{OpKind::kLog, {}, {x0}}};
  const RuleCheck check = Check(RuleOf(1, {log[0], Scale(2, At(0))}, {log[0], Scale(2, At(0))}));
  EXPECT_EQ(check.failure, "");
  EXPECT_EQ(check.without_value, 0);
  EXPECT_EQ(check.gradients, RuleCheck::Gradient::kChecked);
}

TEST(CheckRules, SameSeedSameFailure) {
  const Rule rule = RuleOf(2, {{OpKind::kSub, {}, {x0, x1}}}, {{OpKind::kSub, {}, {x1, x0}}});
  EXPECT_EQ(Check(rule).failure, Check(rule).failure);
}

TEST(CheckCommand, FailsOnAFileWithAFalseRule) {
  const std::string file = testing::TempDir() + "/false.rules";
  RuleSet rules;
  rules.rules = {RuleOf(1, {{OpKind::kRelu, {}, {x0}}, {OpKind::kRelu, {}, {At(0)}}},
                        {{OpKind::kRelu, {}, {x0}}})};
  ASSERT_TRUE(SaveRules(file, rules).ok());
  CheckCommand command;
  command.options.instances = 10;
  EXPECT_EQ(RunCheck(file, command).value(), 0);
  rules.rules.push_back(RuleOf(1, {{OpKind::kRelu, {}, {x0}}}, {{OpKind::kTanh, {}, {x0}}}));
  ASSERT_TRUE(SaveRules(file, rules).ok());
  EXPECT_EQ(RunCheck(file, command).value(), 1);
  command.ids = {"r000000000000"};
  EXPECT_FALSE(RunCheck(file, command).ok());
}

}  // namespace
}  // namespace isomer
