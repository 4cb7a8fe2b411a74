#include "verifier/plans/plan_checker.h"

#include <gtest/gtest.h>

#include <functional>

#include "rules/matching/rewrite.h"
#include "tests/verifier/rule_from_text.h"

namespace isomer {
namespace {

RuleSet ProvedRules() {
  RuleSet set;
  const std::vector<std::vector<int>> matmuls = {{2, 2}};
  Condition divides = Divides("d", 0, -1);
  divides.right = IntExpr::Variable("a");
  set.rules = {
      RuleFromText("matmul(x0, x1) -> combine(matmul(partition(x0; axis=-2, degree=d), "
                   "replicate(x1; degree=d)); axis=-2, degree=d)",
                   matmuls, {Divides("d", 0, -2)}),
      RuleFromText("matmul(x0, x1) -> reduce(matmul(partition(x0; axis=-1, degree=d), "
                   "partition(x1; axis=-2, degree=d)); degree=d)",
                   matmuls, {Divides("d", 0, -1)}),
      RuleFromText("relu(x0) -> combine(relu(partition(x0; axis=a, degree=d)); axis=a, degree=d)",
                   {{2}}, {divides}),
      RuleFromText("partition(combine(x0; axis=a, degree=d); axis=a, degree=d) -> x0", {{2}}),
  };
  Prover prover;
  for (Rule& rule : set.rules) {
    rule.proof = prover.Prove(rule);
    EXPECT_EQ(rule.proof.verdict, ProofRecord::Verdict::kProved) << rule.proof.note;
  }
  return set;
}

const RuleSet& Rules() {
  static const RuleSet* rules = [] {
    auto* proved = new RuleSet(ProvedRules());
    proved->BuildIndex();
    return proved;
  }();
  return *rules;
}

// Tasks side by side from device 0 on.
MachineView ViewOf(const TensorType& type) {
  MachineView view;
  std::vector<int64_t> axes;
  for (const Dim& dim : type.dims) axes.push_back(dim.degree);
  axes.push_back(type.copies);
  axes.push_back(type.partials);
  int64_t stride = 1;
  view.strides.assign(axes.size(), 0);
  for (size_t i = axes.size(); i-- > 0;) {
    view.strides[i] = stride;
    stride *= axes[i];
  }
  return view;
}

void Apply(const Rule& rule, Binding given, Graph* graph, Plan* plan) {
  const std::vector<DerivationStep> matches = FindMatches(*graph, rule, given);
  ASSERT_FALSE(matches.empty()) << rule.ToString();
  ASSERT_TRUE(ApplyStep(rule, matches[0], graph).ok());
  plan->steps.push_back(matches[0]);
}

// relu(x * w) * v: rows over two devices, then the last product's contraction over two.
Plan RealPlan() {
  Plan plan;
  Graph& model = plan.model.graph;
  const TensorRef x = model.AddInput("x", SequentialType({8, 16}));
  const TensorRef w = model.AddWeight("w", SequentialType({16, 8}));
  const TensorRef v = model.AddWeight("v", SequentialType({8, 4}));
  const TensorRef hidden = *model.AddOp(OpKind::kMatMul, {x, w}, "hidden");
  const TensorRef active = *model.AddOp(OpKind::kRelu, {hidden}, "active");
  model.AddOutput("y", *model.AddOp(OpKind::kMatMul, {active, v}, "last"));
  plan.model.name = "two_layers";
  plan.mode = "inference";
  plan.machine = "test";
  plan.num_devices = 4;
  plan.rules_digest = Rules().Digest();
  Graph graph = model;
  const std::vector<Rule>& rules = Rules().rules;
  Binding two, columns;
  two.variables = {{"d", 2}};
  columns.variables = {{"d", 2}, {"a", -2}};
  Apply(rules[0], two, &graph, &plan);      // hidden, by rows
  Apply(rules[2], columns, &graph, &plan);  // active, by rows
  Apply(rules[3], {}, &graph, &plan);       // combine and partition between them
  Apply(rules[1], two, &graph, &plan);      // a contraction
  plan.graph = graph.Canonical();
  for (int id = 0; id < plan.graph.num_nodes(); ++id) {
    plan.views.push_back(ViewOf(plan.graph.node(id).outputs[0]));
  }
  plan.seal = SealOf(plan);
  return plan;
}

void ExpectRefused(const Plan& plan, const std::string& change, const RuleSet& rules = Rules()) {
  const absl::Status verdict = CheckPlan(plan, rules);
  EXPECT_FALSE(verdict.ok()) << change;
  EXPECT_EQ(std::string(verdict.message()).find('\n'), std::string::npos) << verdict;
}

// The same change, with a seal that fits: it must be refused for what it is.
void ExpectRefusedThoughSealed(Plan plan, const std::string& change) {
  ExpectRefused(plan, change + ", not sealed");
  plan.seal = SealOf(plan);
  ExpectRefused(plan, change);
}

Plan WithGraph(const Plan& plan, const std::function<void(std::vector<Node>*)>& change) {
  std::vector<Node> nodes;
  for (int id = 0; id < plan.graph.num_nodes(); ++id) nodes.push_back(plan.graph.node(id));
  change(&nodes);
  Plan changed = plan;
  absl::StatusOr<Graph> graph = GraphFromParts(nodes, plan.graph.outputs());
  // What is no graph cannot be loaded from a file either: an empty one stands for it.
  changed.graph = graph.ok() ? *graph : Graph();
  return changed;
}

TEST(PlanChecker, AcceptsARealPlan) {
  const Plan plan = RealPlan();
  EXPECT_EQ(plan.steps.size(), 4u);
  EXPECT_TRUE(CheckPlan(plan, Rules()).ok()) << CheckPlan(plan, Rules());
  Prover prover;
  const absl::StatusOr<int> proved = ProveRulesOf(plan, Rules(), &prover);
  ASSERT_TRUE(proved.ok()) << proved.status();
  EXPECT_EQ(*proved, 4);
}

TEST(PlanChecker, AcceptsAPlanOfNoSteps) {
  Plan plan = RealPlan();
  plan.steps.clear();
  plan.graph = plan.model.graph.Canonical();
  plan.views.clear();
  for (int id = 0; id < plan.graph.num_nodes(); ++id) {
    plan.views.push_back(ViewOf(plan.graph.node(id).outputs[0]));
  }
  plan.seal = SealOf(plan);
  EXPECT_TRUE(CheckPlan(plan, Rules()).ok()) << CheckPlan(plan, Rules());
}

TEST(PlanChecker, RefusesEveryChangedDegreeOfAStep) {
  const Plan plan = RealPlan();
  for (size_t s = 0; s < plan.steps.size(); ++s) {
    for (const auto& [name, value] : plan.steps[s].variables) {
      for (int64_t other : {value + 1, value * 2, int64_t{0}, -value, int64_t{1}}) {
        if (other == value) continue;
        Plan changed = plan;
        changed.steps[s].variables[name] = other;
        ExpectRefusedThoughSealed(
            changed, "step " + std::to_string(s) + ": " + name + " = " + std::to_string(other));
      }
    }
  }
}

TEST(PlanChecker, RefusesEveryChangedDegreeOfTheGraph) {
  const Plan plan = RealPlan();
  for (int id = 0; id < plan.graph.num_nodes(); ++id) {
    const std::string where = plan.graph.Label({id});
    if (plan.graph.node(id).op.Find("degree") != nullptr) {
      ExpectRefusedThoughSealed(
          WithGraph(plan,
                    [&](std::vector<Node>* nodes) { (*nodes)[id].op.Set("degree", int64_t{4}); }),
          "operator of " + where);
    }
    for (int i = 0; i < plan.graph.node(id).outputs[0].rank(); ++i) {
      ExpectRefusedThoughSealed(
          WithGraph(plan,
                    [&](std::vector<Node>* nodes) { (*nodes)[id].outputs[0].dims[i].degree *= 2; }),
          "type of " + where);
    }
  }
}

TEST(PlanChecker, RefusesEveryChangedView) {
  const Plan plan = RealPlan();
  for (size_t id = 0; id < plan.views.size(); ++id) {
    const std::string where = "view of " + plan.graph.Label({static_cast<int>(id)});
    Plan changed = plan;
    changed.views[id].start += 1;  // May be as good a plan, but is not the one that was made.
    ExpectRefused(changed, where);
    changed.views[id].start = plan.num_devices;
    ExpectRefusedThoughSealed(changed, where + " outside");
    for (size_t axis = 0; axis < plan.views[id].strides.size(); ++axis) {
      changed = plan;
      changed.views[id].strides[axis] += 1;
      ExpectRefused(changed, where + ", a stride");
    }
    changed = plan;
    changed.views[id].strides.pop_back();
    ExpectRefusedThoughSealed(changed, where + ", one stride less");
  }
  Plan changed = plan;
  changed.views.pop_back();
  ExpectRefusedThoughSealed(changed, "one view less");
}

TEST(PlanChecker, RefusesEveryChangedStep) {
  const Plan plan = RealPlan();
  for (size_t s = 0; s < plan.steps.size(); ++s) {
    const std::string where = "step " + std::to_string(s);
    Plan changed = plan;
    changed.steps.erase(changed.steps.begin() + s);
    ExpectRefusedThoughSealed(changed, where + " dropped");
    changed = plan;
    changed.steps.insert(changed.steps.begin() + s, plan.steps[s]);
    ExpectRefusedThoughSealed(changed, where + " twice");
    for (const Rule& rule : Rules().rules) {
      if (rule.id == plan.steps[s].rule) continue;
      changed = plan;
      changed.steps[s].rule = rule.id;
      ExpectRefusedThoughSealed(changed, where + " by another rule");
    }
    for (size_t n = 0; n < plan.steps[s].nodes.size(); ++n) {
      changed = plan;
      changed.steps[s].nodes[n].value += 1;
      ExpectRefusedThoughSealed(changed, where + " at another node");
      changed.steps[s].nodes[n].value = 1000;
      ExpectRefusedThoughSealed(changed, where + " at no node");
    }
    for (size_t i = 0; i < plan.steps[s].inputs.size(); ++i) {
      changed = plan;
      changed.steps[s].inputs[i].node.value += 1;
      ExpectRefusedThoughSealed(changed, where + " with another input");
    }
    if (s > 0) {
      changed = plan;
      std::swap(changed.steps[s - 1], changed.steps[s]);
      // Where steps do not touch, the other order is as good, but is not the one that was made.
      ExpectRefused(changed, where + " exchanged with the one before");
    }
  }
}

TEST(PlanChecker, RefusesEveryChangedEdge) {
  const Plan plan = RealPlan();
  for (int id = 0; id < plan.graph.num_nodes(); ++id) {
    for (size_t i = 0; i < plan.graph.node(id).inputs.size(); ++i) {
      for (int other = 0; other < id; ++other) {
        if (plan.graph.node(id).inputs[i].node.value == other) continue;
        ExpectRefusedThoughSealed(WithGraph(plan,
                                            [&](std::vector<Node>* nodes) {
                                              (*nodes)[id].inputs[i] = {{other}, 0};
                                            }),
                                  "edge into " + plan.graph.Label({id}));
      }
    }
  }
}

TEST(PlanChecker, RefusesRulesThatAreNotThoseOfThePlan) {
  const Plan plan = RealPlan();
  RuleSet other = Rules();
  other.rules.erase(other.rules.begin() + 2);
  other.BuildIndex();
  ExpectRefused(plan, "other rules", other);
  // What a file says of its proofs is not read.
  RuleSet unproved = Rules();
  unproved.rules[0].proof.verdict = ProofRecord::Verdict::kUnknown;
  unproved.BuildIndex();
  Plan same_digest = plan;
  same_digest.rules_digest = unproved.Digest();
  same_digest.seal = SealOf(same_digest);
  EXPECT_TRUE(CheckPlan(same_digest, unproved).ok()) << CheckPlan(same_digest, unproved);
  RuleSet tampered = Rules();
  tampered.rules[3].target.outputs = tampered.rules[3].source.outputs;
  tampered.rules[3].target.nodes = tampered.rules[3].source.nodes;
  tampered.BuildIndex();
  same_digest.rules_digest = tampered.Digest();
  same_digest.seal = SealOf(same_digest);
  ExpectRefused(same_digest, "a rule that is not what its id says", tampered);
}

TEST(PlanChecker, RefusesAFalseRuleThatClaimsToBeProved) {
  RuleSet rules;
  rules.rules = {RuleFromText("relu(relu(x0)) -> x0", {{2}})};
  rules.rules[0].proof.verdict = ProofRecord::Verdict::kProved;
  rules.BuildIndex();
  Plan plan = RealPlan();
  Graph& model = plan.model.graph;
  model = Graph();
  const TensorRef x = model.AddInput("x", SequentialType({4, 4}));
  const TensorRef once = *model.AddOp(OpKind::kRelu, {x});
  model.AddOutput("y", *model.AddOp(OpKind::kRelu, {once}));
  plan.steps.clear();
  Graph graph = model;
  Apply(rules.rules[0], {}, &graph, &plan);
  plan.graph = graph.Canonical();
  plan.views = {ViewOf(plan.graph.node(0).outputs[0])};
  plan.rules_digest = rules.Digest();
  plan.seal = SealOf(plan);
  const absl::Status verdict = CheckPlan(plan, rules);
  EXPECT_NE(std::string(verdict.message()).find("not shown that these calls"), std::string::npos)
      << verdict;
  Prover prover;
  const absl::Status proved = ProveRulesOf(plan, rules, &prover).status();
  EXPECT_NE(std::string(proved.message()).find("refuted"), std::string::npos) << proved;
}

}  // namespace
}  // namespace isomer
