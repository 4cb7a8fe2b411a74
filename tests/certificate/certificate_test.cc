// The checker alone: this program links neither the prover nor the matcher of rules.
#include "verifier/certificate/certificate.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

namespace isomer {
namespace {

using testing::AllOf;
using testing::HasSubstr;

AttributePattern SameAttribute(const std::string& name) { return {name, AttributeVariable{name}}; }

// relu(transpose(x0; perm=p)) -> transpose(relu(x0); perm=p), whatever the permutation.
Rule ReluBeforeTranspose() {
  Rule rule;
  rule.num_inputs = 1;
  rule.ranks = {{2}};
  rule.variables = {{"perm", VariableKind::kAttribute}};
  const PatternNode transpose{OpKind::kTranspose, {SameAttribute("perm")}, {PatternRef::Input(0)}};
  PatternNode relu{OpKind::kRelu, {}, {PatternRef::Node(0)}};
  rule.source = {{transpose, relu}, {PatternRef::Node(1)}};
  PatternNode last = transpose;
  relu.inputs = {PatternRef::Input(0)};
  last.inputs = {PatternRef::Node(0)};
  rule.target = {{relu, last}, {PatternRef::Node(1)}};
  rule.conditions = {{.kind = Condition::Kind::kByStructure}};
  rule.proof.verdict = ProofRecord::Verdict::kProved;
  SetId(&rule);
  return rule;
}

// relu(x0) -> combine(relu(partition(x0))) along the last axis.
Rule SplitRelu() {
  Rule rule;
  rule.num_inputs = 1;
  rule.ranks = {{2}};
  rule.variables = {{"d", VariableKind::kDegree}};
  Condition divides{.kind = Condition::Kind::kDivides};
  divides.left = IntExpr::Variable("d");
  divides.right = IntExpr::Constant(-1);
  divides.input = 0;
  rule.conditions = {divides};
  const std::vector<AttributePattern> attributes = {{"axis", IntExpr::Constant(-1)},
                                                    {"degree", IntExpr::Variable("d")}};
  rule.source = {{{OpKind::kRelu, {}, {PatternRef::Input(0)}}}, {PatternRef::Node(0)}};
  rule.target = {{{OpKind::kPartition, attributes, {PatternRef::Input(0)}},
                  {OpKind::kRelu, {}, {PatternRef::Node(0)}},
                  {OpKind::kCombine, attributes, {PatternRef::Node(1)}}},
                 {PatternRef::Node(2)}};
  rule.proof.verdict = ProofRecord::Verdict::kProved;
  SetId(&rule);
  return rule;
}

Graph Parsed(const std::string& text) {
  absl::StatusOr<Graph> graph = ParseGraph(text);
  EXPECT_TRUE(graph.ok()) << graph.status();
  return *std::move(graph);
}

class CertificateTest : public testing::Test {
 protected:
  CertificateTest() {
    rules_.rules = {ReluBeforeTranspose(), SplitRelu()};
    rules_.BuildIndex();
    // Two branches alike, and one of the two rules at each.
    plan_.model.graph = Parsed(R"(
%0 = input "x" : f32[4,8]
%1 = input "z" : f32[4,8]
%2 = transpose(%0) {perm=[1,0]} : f32[8,4]
%3 = transpose(%1) {perm=[1,0]} : f32[8,4]
%4 = relu(%2) : f32[8,4]
%5 = relu(%3) : f32[8,4]
output "a" = %4
output "b" = %5
)");
    plan_.mode = "inference";
    plan_.num_devices = 2;
    plan_.rules_digest = rules_.Digest();
    plan_.steps = {Step(0, {2, 4}, 0), Step(0, {3, 5}, 1), Step(1, {8}, 1)};
    plan_.steps[2].variables = {{"d", 2}};
    plan_.graph = Parsed(R"(
%0 = input "x" : f32[4,8]
%1 = input "z" : f32[4,8]
%2 = relu(%0) : f32[4,8]
%3 = transpose(%2) {perm=[1,0]} : f32[8,4]
%4 = partition(%1) {axis=-1, degree=2} : f32[4,8:2]
%5 = relu(%4) : f32[4,8:2]
%6 = combine(%5) {axis=-1, degree=2} : f32[4,8]
%7 = transpose(%6) {perm=[1,0]} : f32[8,4]
output "a" = %3
output "b" = %7
)");
    for (int id = 0; id < plan_.graph.num_nodes(); ++id) {
      plan_.views.push_back(RowMajorView(plan_.graph.node(id).outputs[0]));
    }
  }

  DerivationStep Step(int rule, std::vector<int> nodes, int input) const {
    DerivationStep step;
    step.rule = rules_.rules[rule].id;
    for (int node : nodes) step.nodes.push_back({node});
    step.inputs = {{{input}, 0}};
    return step;
  }

  absl::Status Check(const CertificateOptions& options = {}) {
    plan_.seal = SealOf(plan_);
    return CheckCertificate(plan_, rules_, options, &report_);
  }

  RuleSet rules_;
  Plan plan_;
  CertificateReport report_;
};

TEST_F(CertificateTest, SaysByWhatStepsWereDecided) {
  EXPECT_EQ(Check(), absl::OkStatus());
  const std::map<EqualBy, int64_t> expected = {{EqualBy::kTheorem, 2}, {EqualBy::kSameTerm, 1}};
  EXPECT_EQ(report_.steps, expected);
  EXPECT_EQ(report_.lemmas, std::set<std::string>{"transpose_moves_elements"});
}

// Whatever a rules file says of its rules, a step is judged by its own calls.
TEST_F(CertificateTest, ProofsThatAFileClaimsAreNotRead) {
  for (Rule& rule : rules_.rules) rule.proof.verdict = ProofRecord::Verdict::kUnknown;
  plan_.rules_digest = rules_.Digest();
  EXPECT_EQ(Check(), absl::OkStatus());
}

// gelu for relu, in a rule that says that it is proved, and in the plan's graph.
TEST_F(CertificateTest, FalseRuleIsRefusedWhereItIsUsed) {
  Rule& rule = rules_.rules[0];
  const std::string old = rule.id;
  rule.target.nodes[0].kind = OpKind::kGelu;
  SetId(&rule);
  rules_.BuildIndex();
  for (DerivationStep& step : plan_.steps) {
    if (step.rule == old) step.rule = rule.id;
  }
  plan_.rules_digest = rules_.Digest();
  EXPECT_THAT(std::string(Check().message()),
              AllOf(HasSubstr("step 0 (rule r"), HasSubstr("not shown that these calls")));
}

TEST_F(CertificateTest, StepsNameNothingThatTheirRuleLacks) {
  plan_.steps[0].numbers["f"] = 2;
  EXPECT_THAT(std::string(Check().message()), HasSubstr("the rule has no variable 'f'"));
  plan_.steps[0].numbers.clear();
  plan_.steps[0].variables["e"] = 2;
  EXPECT_THAT(std::string(Check().message()), HasSubstr("the rule has no variable 'e'"));
}

TEST_F(CertificateTest, StepAtANodeThatIsGoneIsRefused) {
  plan_.steps.push_back(plan_.steps[0]);
  EXPECT_THAT(std::string(Check().message()), HasSubstr("step 3 (rule r"));
  EXPECT_THAT(std::string(Check().message()), HasSubstr("was replaced before"));
}

TEST_F(CertificateTest, StepThatTakesWhatIsGoneIsRefused) {
  plan_.steps.back().inputs = {{{3}, 0}};
  EXPECT_THAT(std::string(Check().message()), HasSubstr("there is no tensor %3"));
}

TEST_F(CertificateTest, NodesThatNoStepGivesAreRefused) {
  plan_.graph.AddOp(OpKind::kRelu, {{{7}, 0}}).IgnoreError();
  plan_.views.push_back(plan_.views.back());
  EXPECT_THAT(std::string(Check().message()), HasSubstr("the derivation does not give %8 relu"));
}

TEST_F(CertificateTest, MissingStepNamesTheNode) {
  plan_.steps.pop_back();
  EXPECT_THAT(std::string(Check().message()), HasSubstr("graph: %"));
}

// The first step, as one that names no rule: relu before transpose, said outright.
class StatedStepTest : public CertificateTest {
 protected:
  StatedStepTest() {
    DerivationStep& step = plan_.steps[0];
    step = {};
    step.nodes = {{2}, {4}};
    step.calls = {
        {Operator(OpKind::kRelu), {{{0}, 0}}},
        {Operator(OpKind::kTranspose, {{"perm", std::vector<int64_t>{1, 0}}}), {{{6}, 0}}}};
    step.replaced = {{{{4}, 0}, {{7}, 0}}};
  }
  DerivationStep& stated() { return plan_.steps[0]; }
  void ExpectRefused(const std::string& why) {
    EXPECT_THAT(std::string(Check().message()),
                AllOf(HasSubstr("step 0 (no rule): "), HasSubstr(why)));
  }
};

TEST_F(StatedStepTest, IsDecidedByItsCalls) {
  EXPECT_EQ(Check(), absl::OkStatus());
  EXPECT_EQ(report_.steps[EqualBy::kTheorem], 2);
}

TEST_F(StatedStepTest, OtherCallsAreRefused) {
  stated().calls[0].op = Operator(OpKind::kGelu);
  ExpectRefused("not shown that these calls compute the same");
}

TEST_F(StatedStepTest, AnInputInPlaceOfACallIsRefused) {
  stated().nodes = {{2}, {3}, {4}};
  stated().replaced = {{{{4}, 0}, {{7}, 0}}, {{{3}, 0}, {{7}, 0}}};
  ExpectRefused("not shown that these calls compute the same");
}

TEST_F(StatedStepTest, AnotherTypeIsRefused) {
  stated().replaced[0].to = {{6}, 0};
  ExpectRefused("is f32[8,4] and becomes f32[4,8]");
}

TEST_F(StatedStepTest, WhatItReplacesMustBeAmongItsNodes) {
  stated().replaced[0].from = {{5}, 0};
  ExpectRefused("%5 is not among the calls that it replaces");
  stated().replaced[0].from = {{4}, 1};
  ExpectRefused("%4 is not among the calls that it replaces");
}

TEST_F(StatedStepTest, ReplacingTwiceIsRefused) {
  stated().replaced.push_back(stated().replaced[0]);
  ExpectRefused("is replaced twice");
}

TEST_F(StatedStepTest, ReplacingNothingIsRefused) {
  stated().replaced.clear();
  ExpectRefused("it replaces nothing");
}

TEST_F(StatedStepTest, LeavesAndAbsentNodesAreRefused) {
  stated().nodes[0] = {0};
  ExpectRefused("%0 input 'x' is no call");
  stated().nodes[0] = {60};
  ExpectRefused("there is no node %60");
  stated().nodes[0] = {-1};
  ExpectRefused("there is no node %-1");
  stated().nodes[0] = {4};
  ExpectRefused("%4 is matched twice");
}

TEST_F(StatedStepTest, WhatItTakesMustStay) {
  stated().calls[1].inputs = {{{4}, 0}};
  ExpectRefused("it takes %4 relu, which it replaces");
  stated().calls[1].inputs = {{{8}, 0}};
  ExpectRefused("there is no tensor %8");
}

TEST_F(StatedStepTest, AtNodesThatAreGoneIsRefused) {
  plan_.steps.insert(plan_.steps.begin() + 1, plan_.steps[0]);
  plan_.steps[1].calls[1].inputs = {{{8}, 0}};
  plan_.steps[1].replaced[0].to = {{9}, 0};
  EXPECT_THAT(std::string(Check().message()), HasSubstr("step 1 (no rule): "));
  EXPECT_THAT(std::string(Check().message()), HasSubstr("was replaced before"));
}

TEST_F(StatedStepTest, CallsBesideARuleAreRefused) {
  stated().rule = rules_.rules[0].id;
  EXPECT_THAT(std::string(Check().message()), HasSubstr("it has a rule and states calls"));
}

TEST_F(StatedStepTest, VariablesWithoutARuleAreRefused) {
  stated().variables["d"] = 2;
  ExpectRefused("it has inputs or variables, but no rule");
}

// A product with a constant, as a scale by the number that all of its elements are.
class ConstantNumberTest : public testing::Test {
 protected:
  ConstantNumberTest() {
    plan_.model.graph = Parsed(R"(
%0 = input "x" : f32[2,3]
%1 = constant "c" : f32[3]
%2 = mul(%0, %1) : f32[2,3]
output "y" = %2
)");
    plan_.model.weights["c"] = {0.5, 0.5, 0.5};
    plan_.mode = "inference";
    plan_.rules_digest = rules_.Digest();
    DerivationStep step;
    step.nodes = {{2}};
    step.calls = {{Operator(OpKind::kScale, {{"factor", 0.5}}), {{{0}, 0}}}};
    step.replaced = {{{{2}, 0}, {{3}, 0}}};
    plan_.steps = {step};
    plan_.graph = Parsed(R"(
%0 = input "x" : f32[2,3]
%1 = constant "c" : f32[3]
%2 = scale(%0) {factor=0.5} : f32[2,3]
output "y" = %2
)");
    for (int id = 0; id < plan_.graph.num_nodes(); ++id) {
      plan_.views.push_back(RowMajorView(plan_.graph.node(id).outputs[0]));
    }
  }

  absl::Status Check() {
    plan_.seal = SealOf(plan_);
    return CheckCertificate(plan_, rules_, {});
  }
  void ExpectRefused() {
    EXPECT_THAT(std::string(Check().message()), HasSubstr("not shown that these calls"));
  }

  RuleSet rules_;
  Plan plan_;
};

TEST_F(ConstantNumberTest, IsRead) { EXPECT_EQ(Check(), absl::OkStatus()); }

TEST_F(ConstantNumberTest, OfAnotherNumberIsRefused) {
  plan_.model.weights["c"] = {0.25, 0.25, 0.25};
  ExpectRefused();
}

TEST_F(ConstantNumberTest, OfSeveralNumbersIsRefused) {
  plan_.model.weights["c"] = {0.5, 0.5, 0.25};
  ExpectRefused();
}

TEST_F(ConstantNumberTest, OfNoValueIsRefused) {
  plan_.model.weights.clear();
  ExpectRefused();
  plan_.model.weights["c"] = {std::nanf(""), std::nanf(""), std::nanf("")};
  ExpectRefused();
}

// What is trained has no value.
TEST_F(ConstantNumberTest, OfAWeightIsRefused) {
  for (Graph* graph : {&plan_.model.graph, &plan_.graph}) {
    std::string text = graph->ToString();
    text.replace(text.find("constant"), 8, "weight");
    *graph = Parsed(text);
  }
  ExpectRefused();
}

TEST_F(CertificateTest, ScheduleIsLookedAtUnlessItIsNotWanted) {
  plan_.mode = "training";  // Without a loss there is nothing to train.
  EXPECT_THAT(std::string(Check().message()), HasSubstr("schedule: "));
  EXPECT_EQ(Check({.schedule = ScheduleCheck::kNone}), absl::OkStatus());
}

}  // namespace
}  // namespace isomer
