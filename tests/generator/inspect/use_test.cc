#include "generator/inspect/use.h"

#include <string>
#include <utility>

#include "generator/inspect/commands.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/generator/inspect/small_rules.h"

namespace isomer {
namespace {

using testing::HasSubstr;

// relu(relu(x0)) -> relu(x0), rows of a product, and one that nothing uses.
RuleSet ThreeRules() {
  RuleSet rules;
  Rule relu;
  relu.id = "relu";
  relu.num_inputs = 1;
  relu.ranks = {{2}};
  relu.source.nodes = {UnaryNode(OpKind::kRelu, PatternRef::Input(0)),
                       UnaryNode(OpKind::kRelu, PatternRef::Node(0))};
  relu.source.outputs = {PatternRef::Node(1)};
  relu.target.nodes = {UnaryNode(OpKind::kRelu, PatternRef::Input(0))};
  relu.target.outputs = {PatternRef::Node(0)};
  Rule rows = RowsRule();
  rows.id = "rows";
  Rule unused = relu;
  unused.id = "unused";
  for (Pattern* side : {&unused.source, &unused.target}) {
    for (PatternNode& node : side->nodes) node.kind = OpKind::kAbs;
  }
  rules.rules = {unused, rows, relu};
  rules.BuildIndex();
  return rules;
}

// relu three times, and a plan that took two of them away, one by one.
Plan PlanOfRelus() {
  Plan plan;
  plan.model.name = "relus";
  Graph& graph = plan.model.graph;
  TensorRef x = graph.AddInput("x", SequentialType({4, 4}));
  for (int i = 0; i < 3; ++i) x = *graph.AddOp(OpKind::kRelu, {x});
  graph.AddOutput("y", x);
  DerivationStep step;
  step.rule = "relu";
  plan.steps = {step, step, DerivationStep()};
  return plan;
}

TEST(UseOfRules, CountsPlansStepsAndMatches) {
  const RuleSet rules = ThreeRules();
  const absl::StatusOr<UseOfRules> use = CountUse(rules, {PlanOfRelus(), PlanOfRelus()});
  ASSERT_TRUE(use.ok()) << use.status();
  EXPECT_EQ(use->plans, 2);
  EXPECT_EQ(use->defined_steps, 2);
  ASSERT_EQ(use->rules.size(), 3u);
  const UseOfRule& relu = use->rules[0];
  EXPECT_EQ(relu.id, "relu");
  EXPECT_EQ(relu.plans, 2);
  EXPECT_EQ(relu.steps, 4);
  EXPECT_EQ(relu.models, 1);  // Both are of one model.
  EXPECT_EQ(relu.matches, 2);
  for (size_t r : {1, 2}) {
    EXPECT_EQ(use->rules[r].plans, 0);
    EXPECT_EQ(use->rules[r].matches, 0);
  }
  const std::string text = UseText(*use);
  EXPECT_THAT(text, HasSubstr("2 plans, 2 of their steps by definition"));
  EXPECT_THAT(text, HasSubstr("     2       4       1        2  relu"));
  EXPECT_THAT(UseJson(*use).PrintCompact(), HasSubstr("\"id\":\"relu\""));
}

TEST(UseOfRules, OtherRulesAreAnError) {
  Plan plan = PlanOfRelus();
  plan.steps[0].rule = "mine";
  EXPECT_EQ(CountUse(ThreeRules(), {plan}).status().message(),
            "the plan of relus uses rule mine, which is not in the file");
}

TEST(UseOfRules, CommandTakesPlansAlone) {
  const std::string rules = ISOMER_SOURCE_DIR "/rules/default.rules";
  EXPECT_THAT(std::string(UseCommand({rules}, {rules}).status().message()),
              HasSubstr("default.rules: is a file of kind 'rules', not 'plan'"));
  EXPECT_EQ(UseCommand({}, {rules}).status().message(), "expected 'stats FILE --use=PLANS'");
}

}  // namespace
}  // namespace isomer
