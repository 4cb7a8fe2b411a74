#include "optimizer/substitution/substitution.h"

#include <gtest/gtest.h>

#include "tests/optimizer/example_models.h"
#include "tests/optimizer/example_rules.h"
#include "tests/optimizer/test_machine.h"

namespace isomer {
namespace {

class Substitutions : public testing::Test {
 protected:
  Substitutions()
      : model_(ThreeProducts(64, 16)),
        rules_(ExampleRules(model_.graph)),
        index_(rules_),
        cost_(TestMachine(1, 2)),
        tables_(index_, cost_, {}),
        matcher_(index_.algebra()) {
    piece_ = SplitGraph(model_.graph, model_.graph.num_nodes()).value()[0];
  }

  SubstitutionSearch Begin(SubstitutionOptions options = {.alpha = 1e9}) {
    return SubstitutionSearch(piece_, {}, options, &matcher_, &root_matches_, &tables_);
  }

  Model model_;
  RuleSet rules_;
  RuleIndex index_;
  CostModel cost_;
  CostTables tables_;
  RuleMatcher matcher_;
  RootMatches root_matches_;  // of all searches of the piece
  Piece piece_;
};

TEST_F(Substitutions, EndWhenAllGraphsWereSeen) {
  SubstitutionSearch search = Begin();
  ASSERT_TRUE(search.Start({}).ok());
  EXPECT_FALSE(search.Done());
  ASSERT_TRUE(search.Continue(100000).ok());
  EXPECT_TRUE(search.Done());
  // Three products merge in pairs (in either order), and what was merged with the third.
  EXPECT_GT(search.mapped(), 6);
  EXPECT_LT(search.mapped(), 100);
  EXPECT_EQ(search.TakeResult().stop, StopReason::kExhausted);
}

TEST_F(Substitutions, InTurnsTheyAreTheSame) {
  SubstitutionSearch at_once = Begin(), in_turns = Begin();
  ASSERT_TRUE(at_once.Start({}).ok() && in_turns.Start({}).ok());
  ASSERT_TRUE(at_once.Continue(12).ok());
  for (int turn = 0; turn < 12; ++turn) ASSERT_TRUE(in_turns.Continue(1).ok());
  EXPECT_EQ(at_once.mapped(), in_turns.mapped());
  EXPECT_EQ(at_once.Known(100), in_turns.Known(100));
}

TEST_F(Substitutions, WhatIsKnownIsMappedBeforeTheSearch) {
  SubstitutionSearch first = Begin();
  ASSERT_TRUE(first.Start({}).ok() && first.Continue(1000).ok());
  const std::vector<Steps> known = first.Known(3);
  ASSERT_GE(known.size(), 2u);
  SubstitutionSearch second = Begin();
  ASSERT_TRUE(second.Start(known).ok());
  EXPECT_EQ(second.best_us(), first.best_us());
  EXPECT_EQ(second.mapped(), 1 + static_cast<int64_t>(known.size()));
}

TEST_F(Substitutions, StepsThatDoNotApplyAreLeftOut) {
  SubstitutionSearch search = Begin();
  DerivationStep step;
  step.rule = "no such rule";
  ASSERT_TRUE(search.Start({{step}}).ok());
  EXPECT_EQ(search.mapped(), 1);
}

TEST_F(Substitutions, TimeThatIsOverLeavesThePieceAsItIs) {
  SubstitutionSearch search = Begin({.deadline = Deadline::In(1e-9)});
  ASSERT_TRUE(search.Start({}).ok() && search.Continue(10).ok());
  const SubstitutionResult result = search.TakeResult();
  EXPECT_EQ(result.mapped, 1);
  EXPECT_EQ(result.stop, StopReason::kTimeLimit);
}

TEST_F(Substitutions, SweepsAreBesideTheSteps) {
  SubstitutionSearch alone = Begin(), swept = Begin();
  ASSERT_TRUE(alone.Start({}).ok() && swept.Start({}).ok());
  swept.TakeSweeps();
  ASSERT_TRUE(alone.Continue(100000).ok() && swept.Continue(100000).ok());
  // Graphs that a sweep led to are looked at again, and expanded.
  EXPECT_LE(swept.best_us(), alone.best_us());
  EXPECT_GE(swept.mapped(), alone.mapped());
  EXPECT_TRUE(swept.Done());
}

TEST_F(Substitutions, NoSweepBeginsWhenTimeIsOver) {
  SubstitutionSearch search = Begin({.deadline = Deadline::In(1e-9)});
  ASSERT_TRUE(search.Start({}).ok());
  search.TakeSweeps();
  EXPECT_EQ(search.mapped(), 1);
}

// relu(matmul(x, y)) -> linear(x, y; activation=1)
Rule FuseRelu() {
  const PatternRef x = PatternRef::Input(0), y = PatternRef::Input(1);
  Rule rule;
  rule.num_inputs = 2;
  rule.ranks = {{2, 2}};
  rule.source.nodes = {{OpKind::kMatMul, {}, {x, y}}, {OpKind::kRelu, {}, {PatternRef::Node(0)}}};
  rule.source.outputs = {PatternRef::Node(1)};
  rule.target.nodes = {{OpKind::kLinear, {{"activation", IntExpr::Constant(1)}}, {x, y}}};
  rule.target.outputs = {PatternRef::Node(0)};
  rule.proof.verdict = ProofRecord::Verdict::kProved;
  SetId(&rule);
  return rule;
}

// A step gives a match in the next layer another operand: it must be found again, whichever layer
// is fused first.
TEST(SubstitutionsInAChain, OneLayerAfterTheOther) {
  constexpr int64_t kSize = 16;
  Model model;
  TensorRef x = model.graph.AddInput("x", SequentialType({kSize, kSize}));
  for (const char* name : {"w0", "w1", "w2"}) {
    const TensorRef w = model.graph.AddWeight(name, SequentialType({kSize, kSize}));
    x = *model.graph.AddOp(OpKind::kRelu, {*model.graph.AddOp(OpKind::kMatMul, {x, w})});
  }
  model.graph.AddOutput("y", x);
  RuleSet rules = ExampleRules(model.graph);
  rules.rules.push_back(FuseRelu());
  rules.BuildIndex();
  const RuleIndex index(rules);
  const CostModel cost(TestMachine(1, 1));
  const Piece piece = SplitGraph(model.graph, model.graph.num_nodes()).value()[0];
  for (uint64_t seed = 1; seed <= 6; ++seed) {
    CostTables tables(index, cost, {.training = false});
    RuleMatcher matcher(index.algebra());
    RootMatches root_matches;
    SubstitutionSearch search(piece, {}, {.seed = seed}, &matcher, &root_matches, &tables);
    ASSERT_TRUE(search.Start({}).ok() && search.Continue(3).ok());
    const SubstitutionResult result = search.TakeResult();
    const auto& best = result.candidates[result.best[0]];
    EXPECT_EQ(best.steps.size(), 3u) << "seed " << seed;
  }
}

}  // namespace
}  // namespace isomer
