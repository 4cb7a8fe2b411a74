#include "optimizer/substitution.h"

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
    return SubstitutionSearch(piece_, {}, options, &matcher_, &tables_);
  }

  Model model_;
  RuleSet rules_;
  RuleIndex index_;
  CostModel cost_;
  CostTables tables_;
  RuleMatcher matcher_;
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

}  // namespace
}  // namespace isomer
