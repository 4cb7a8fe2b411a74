// Steps whose numbers would have to be rounded are no instances of their rules.
#include <gtest/gtest.h>

#include <limits>

#include "tests/verifier/rule_from_text.h"
#include "verifier/plans/plan_checker.h"
#include "verifier/proving/prover.h"

namespace isomer {
namespace {

// scale(scale(x0; a1); a0) <-> scale(x0; a0*a1)
Rule ScaleTwice() {
  Rule rule = RuleFromText("scale(scale(x0; factor=b); factor=a) -> scale(x0; factor=a*b)", {{2}});
  rule.reversible = true;
  SetId(&rule);
  return rule;
}

Graph Scales(const std::vector<double>& factors) {
  Graph graph;
  TensorRef at = graph.AddInput("x", SequentialType({2, 2}));
  for (double factor : factors) {
    at = *graph.AddOp(Operator(OpKind::kScale, {{"factor", factor}}), {at});
  }
  graph.AddOutput("y", at);
  return graph;
}

absl::Status Step(const Rule& rule, double a, double b, Graph graph) {
  DerivationStep step;
  step.rule = rule.id;
  for (int id = 1; id < graph.num_nodes(); ++id) step.nodes.push_back(NodeId{id});
  step.inputs = {TensorRef{{0}, 0}};
  step.numbers = {{"a", a}, {"b", b}};
  return ReplayStep(rule, step, &graph);
}

TEST(ExactSteps, ProductsThatAreNotRounded) {
  const Rule rule = ScaleTwice(), inverse = Inverse(rule);
  EXPECT_TRUE(Step(rule, 0.5, 0.25, Scales({0.25, 0.5})).ok());
  EXPECT_TRUE(Step(inverse, 0.5, 0.25, Scales({0.125})).ok());
  EXPECT_TRUE(Step(inverse, 0, 7, Scales({0})).ok());
}

// In doubles these products are 0, 1, infinity and a hundredth.
TEST(ExactSteps, ProductsThatAreRounded) {
  const Rule rule = ScaleTwice(), inverse = Inverse(rule);
  for (const auto& [a, b] : std::vector<std::pair<double, double>>{
           {1e-162, 1e-162}, {0.1, 10}, {1e200, 1e200}, {0.1, 0.1}}) {
    const absl::Status forward = Step(rule, a, b, Scales({b, a}));
    EXPECT_NE(std::string(forward.message()).find("would have to be rounded"), std::string::npos)
        << forward;
    EXPECT_FALSE(Step(inverse, a, b, Scales({a * b})).ok()) << a << " * " << b;
  }
  const double not_a_number = std::numeric_limits<double>::quiet_NaN();
  EXPECT_FALSE(Step(inverse, not_a_number, 1, Scales({not_a_number})).ok());
  EXPECT_FALSE(Step(inverse, not_a_number, 0, Scales({0})).ok());
}

// A tenth is no double, so ten of what is called 0.1 are not one, and what doubles call 0 is not.
TEST(ExactProofs, ConstantsAreNotRounded) {
  Prover prover;
  const std::vector<std::vector<int>> one = {{2}}, two = {{2, 2}};
  for (const auto& [text, ranks] :
       std::vector<std::pair<std::string, std::vector<std::vector<int>>>>{
           {"scale(scale(x0; factor=0.1); factor=10.0) -> x0", one},
           {"scale(scale(x0; factor=1e-200); factor=1e-200) -> scale(x0; factor=0.0)", one},
           {"scale(scale(x0; factor=0.1); factor=0.1) -> scale(x0; factor=0.01)", one},
           {"add(scale(x0; factor=0.1), scale(x0; factor=0.2)) -> scale(x0; factor=0.3)", one},
           {"add(scale(x0; factor=1e30), sub(x0, scale(x0; factor=1e30))) -> scale(x0; factor=0.0)",
            one},
           {"scale(reciprocal(scale(x0; factor=3.0)); factor=3.0) -> "
            "reciprocal(scale(scale(x0; factor=3.0); factor=0.3333333333333333))",
            one},
           // 2^-1000 is how the prover marks a variable.
           {"add(scale(x0; factor=f), scale(x1; factor=9.332636185032189e-302)) -> "
            "add(scale(x0; factor=f), scale(x1; factor=f))",
            two}}) {
    const ProofRecord record = prover.Prove(RuleFromText(text, ranks));
    EXPECT_NE(record.verdict, ProofRecord::Verdict::kProved) << text;
  }
  for (const std::string text : {"scale(scale(x0; factor=0.125); factor=8.0) -> x0",
                                 "add(scale(x0; factor=0.25), scale(x0; factor=0.5)) -> "
                                 "scale(x0; factor=0.75)",
                                 "reciprocal(scale(x0; factor=3.0)) -> "
                                 "reciprocal(scale(x0; factor=3.0))",
                                 "scale(reciprocal(scale(x0; factor=3.0)); factor=6.0) -> "
                                 "scale(reciprocal(x0); factor=2.0)"}) {
    const ProofRecord record = prover.Prove(RuleFromText(text, one));
    EXPECT_EQ(record.verdict, ProofRecord::Verdict::kProved) << text << "\n" << record.note;
  }
}

// Where the value is 0, a Pad is another declaration.
TEST(ExactProofs, DeclarationsThatDependOnANumberAreNotProvedOfAVariable) {
  Rule rule = RuleFromText(
      "relu(pad(x0; mode=0, padding=[1,1], min=v)) -> pad(relu(x0); mode=0, padding=[1,1], min=v)",
      {{1}});
  for (Pattern* side : {&rule.source, &rule.target}) {
    for (PatternNode& node : side->nodes) {
      for (AttributePattern& attribute : node.attributes) {
        if (attribute.name == "min") attribute.name = "value";
      }
    }
  }
  SetId(&rule);
  const ProofRecord record = Prover().Prove(rule);
  EXPECT_NE(record.verdict, ProofRecord::Verdict::kProved) << record.note;
}

}  // namespace
}  // namespace isomer
