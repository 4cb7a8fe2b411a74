#include "rules/matching/rule_matcher.h"

#include <set>
#include <vector>

#include <gtest/gtest.h>

#include "pcg/support/data_path.h"

namespace isomer {
namespace {

// Products and sums of shared operands, layouts, and elementwise calls: something for many rules.
Graph Mixture() {
  Graph graph;
  const TensorRef x = graph.AddInput("x", SequentialType({8, 16}));
  std::vector<TensorRef> products;
  for (const char* name : {"a", "b", "c"}) {
    const TensorRef weight = graph.AddWeight(name, SequentialType({16, 16}));
    products.push_back(graph.AddOp(OpKind::kMatMul, {x, weight}).value());
  }
  const TensorRef sum = graph.AddOp(OpKind::kAdd, {products[0], products[1]}).value();
  const TensorRef scaled = graph.AddOp(Operator(OpKind::kScale, {{"factor", 0.5}}), {sum}).value();
  const TensorRef both =
      graph.AddOp(Operator(OpKind::kConcat, {{"axis", int64_t{0}}}), {scaled, products[2]}).value();
  const TensorRef relu = graph.AddOp(OpKind::kRelu, {both}).value();
  const TensorRef turned =
      graph.AddOp(Operator(OpKind::kTranspose, {{"perm", std::vector<int64_t>{1, 0}}}), {relu})
          .value();
  graph.AddOutput("y", turned);
  graph.AddOutput("z", graph.AddOp(OpKind::kTanh, {products[2]}).value());
  return graph;
}

class RuleMatching : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    auto loaded = LoadRules(DataPath("rules/default.rules"));
    ASSERT_TRUE(loaded.ok()) << loaded.status();
    rules_ = new RuleSet(*std::move(loaded));
  }
  static std::vector<const Rule*> WithSources() {
    std::vector<const Rule*> rules;
    for (const Rule& rule : rules_->rules) rules.push_back(&rule);
    for (const Rule& rule : rules_->inverses()) rules.push_back(&rule);
    std::erase_if(rules, [](const Rule* rule) { return rule->source.nodes.empty(); });
    return rules;
  }

  static RuleSet* rules_;
};
RuleSet* RuleMatching::rules_ = nullptr;

TEST_F(RuleMatching, FindsWhatEachRuleFindsByItself) {
  const std::vector<const Rule*> rules = WithSources();
  RuleMatcher matcher(rules);
  Graph graph = Mixture();
  // The second round finds every condition remembered, the third another graph.
  for (int round = 0; round < 3; ++round) {
    const GraphIndex index(graph);
    std::vector<std::vector<NodeId>> nears = {{}};
    for (int id = 0; id < graph.num_nodes(); ++id) {
      if (index.PositionOf({id}) >= 0 && !IsLeaf(graph.node(id).op.kind())) nears.push_back({{id}});
    }
    for (const std::vector<NodeId>& near : nears) {
      std::vector<DerivationStep> expected;
      for (const Rule* rule : rules) {
        for (DerivationStep& step : FindMatches(index, *rule, {}, near)) {
          expected.push_back(std::move(step));
        }
      }
      std::vector<DerivationStep> found;
      for (RuleMatch& match : matcher.Find(index, near)) found.push_back(std::move(match.step));
      ASSERT_EQ(found.size(), expected.size());
      EXPECT_EQ(found, expected);
      EXPECT_TRUE(!near.empty() || found.size() > 20);
    }
    if (round != 1) continue;
    const std::vector<RuleMatch> matches = matcher.Find(index);
    ASSERT_TRUE(ApplyStep(*matches[0].rule, matches[0].step, &graph).ok());
  }
}

// Products with a common operand become one, unless one is computed from the other: by what is
// between them, far behind both, or at once.
TEST_F(RuleMatching, JoinsNothingWithWhatIsComputedFromIt) {
  Graph graph;
  const TensorRef x = graph.AddInput("x", SequentialType({16, 16}));
  const auto weight = [&](const char* name) {
    return graph.AddWeight(name, SequentialType({16, 16}));
  };
  const TensorRef first = graph.AddOp(OpKind::kMatMul, {x, weight("a")}).value();
  const TensorRef apart = graph.AddOp(OpKind::kMatMul, {x, weight("b")}).value();
  TensorRef between = first;
  for (int i = 0; i < 3; ++i) between = graph.AddOp(OpKind::kTanh, {between}).value();
  const TensorRef later = graph.AddOp(OpKind::kMatMul, {x, between}).value();
  const TensorRef last = graph.AddOp(OpKind::kMatMul, {x, later}).value();
  graph.AddOutput("y", last);
  graph.AddOutput("z", apart);
  const GraphIndex index(graph);
  std::set<std::set<NodeId>> joined;
  for (const Rule* rule : WithSources()) {
    for (const DerivationStep& step : FindMatches(index, *rule, {}, {})) {
      Graph changed = graph;
      EXPECT_TRUE(ApplyStep(*rule, step, &changed).ok()) << rule->ToString();
      const bool joins = rule->source.nodes.size() == 2 && rule->source.outputs.size() == 2 &&
                         rule->source.nodes[0].kind == OpKind::kMatMul &&
                         rule->source.nodes[1].kind == OpKind::kMatMul;
      if (joins) joined.insert({step.nodes.begin(), step.nodes.end()});
    }
  }
  const std::set<std::set<NodeId>> expected = {
      {first.node, apart.node}, {apart.node, later.node}, {apart.node, last.node}};
  EXPECT_EQ(joined, expected);
}

}  // namespace
}  // namespace isomer
