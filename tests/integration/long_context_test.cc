// Sequences that are split over devices, and what attention exchanges for that.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>

#include "absl/strings/match.h"
#include "optimizer/machine/machine.h"
#include "optimizer/proposal/launch_text.h"
#include "optimizer/search/grid_of_plan.h"
#include "optimizer/search/optimizer.h"
#include "optimizer/sharding/batch_dims.h"
#include "pcg/support/data_path.h"
#include "tests/models/text_model.h"
#include "verifier/certificate/equal_sides.h"
#include "verifier/mutation/plan_changes.h"
#include "verifier/plans/plan_checker.h"

namespace isomer {
namespace {

using testing::HasSubstr;

bool AreShownEqual(const ConcreteSide& source, const ConcreteSide& target,
                   const InputNumbers& numbers) {
  std::set<std::string> lemmas;
  return EqualSides(source, target, &lemmas, numbers).ok();
}

// Eight query heads, of which four share keys, and are rotated.
Model GroupedQueryModel() {
  return TextModel(R"(
%0 = input "x" : f32[4,8,32]
%1 = weight "q" : f32[32,32]
%2 = weight "k" : f32[32,8]
%3 = weight "v" : f32[32,8]
%4 = weight "o" : f32[32,32]
%5 = weight "cos" : f32[8,2]
%6 = weight "sin" : f32[8,2]
%7 = matmul(%0, %1) : f32[4,8,32]
%8 = reshape(%7) {shape=[4,8,8,4]} : f32[4,8,8,4]
%9 = transpose(%8) {perm=[0,2,1,3]} : f32[4,8,8,4]
%10 = rotary(%9, %5, %6) : f32[4,8,8,4]
%11 = matmul(%0, %2) : f32[4,8,8]
%12 = reshape(%11) {shape=[4,8,2,4]} : f32[4,8,2,4]
%13 = transpose(%12) {perm=[0,2,1,3]} : f32[4,2,8,4]
%14 = rotary(%13, %5, %6) : f32[4,2,8,4]
%15 = matmul(%0, %3) : f32[4,8,8]
%16 = reshape(%15) {shape=[4,8,2,4]} : f32[4,8,2,4]
%17 = transpose(%16) {perm=[0,2,1,3]} : f32[4,2,8,4]
%18 = attention(%10, %14, %17) {scale=0.5,causal=1} : f32[4,8,8,4]  # heads
%19 = transpose(%18) {perm=[0,2,1,3]} : f32[4,8,8,4]
%20 = reshape(%19) {shape=[4,8,32]} : f32[4,8,32]
%21 = matmul(%20, %4) : f32[4,8,32]
output "y" = %21
)");
}

class LongContext : public testing::Test {
 protected:
  LongContext() : rules_(LoadRules(DataPath("rules/default.rules")).value()), index_(rules_) {}

  absl::StatusOr<OptimizeResult> Grid(const GridRequest& request) {
    return Grid(GroupedQueryModel(), request, /*training=*/false);
  }

  absl::StatusOr<OptimizeResult> Grid(const Model& model, const GridRequest& request,
                                      bool training) {
    OptimizeOptions options;
    options.equal = AreShownEqual;
    options.plan = kGrid;
    options.grid = request;
    options.training = training;
    const CostModel cost(LoadMachine("dgx_h100", 1, 8).value());
    return Optimize(model, index_, cost, options);
  }

  // Over four devices; in stripes without an exchange of what is no input.
  void ExpectLossIsSplit(const Model& model, bool in_stripes) {
    const auto made =
        Grid(model, {.degrees = {.context = 4, .in_stripes = in_stripes}}, /*training=*/true);
    ASSERT_TRUE(made.ok()) << made.status();
    Plan plan = made->plan;
    plan.seal = SealOf(plan);
    EXPECT_EQ(CheckPlan(plan, rules_), absl::OkStatus());
    int64_t transposes = 0;
    for (int id = 0; id < plan.graph.num_nodes(); ++id) {
      const Node& node = plan.graph.node({id});
      transposes += node.op.kind() == OpKind::kTranspose;
      if (node.op.kind() != OpKind::kCrossEntropy) continue;
      EXPECT_EQ(plan.graph.type(node.inputs[0]).ToString(), "f32[4:2,8:4,16]");
    }
    EXPECT_EQ(transposes, in_stripes ? 4 : 2) << "of x and of the labels";
  }

  static TensorType AttentionOf(const Plan& plan) {
    for (int id = 0; id < plan.graph.num_nodes(); ++id) {
      const Node& node = plan.graph.node({id});
      if (node.op.kind() == OpKind::kAttention) return node.outputs[0];
    }
    return {};
  }

  const RuleSet rules_;
  const RuleIndex index_;
};

// Keys are repeated for each query head, which no rule says: the plan's own steps do, and they are
// proved.
TEST_F(LongContext, AttentionExchangesSequenceForHeads) {
  const auto made = Grid({.degrees = {.tensor = 2, .context = 2, .context_by_heads = true}});
  ASSERT_TRUE(made.ok()) << made.status();
  Plan plan = made->plan;
  EXPECT_EQ(AttentionOf(plan).ToString(), "f32[4:2,8:4,8,4]");
  plan.seal = SealOf(plan);
  EXPECT_EQ(CheckPlan(plan, rules_), absl::OkStatus());
  ASSERT_FALSE(plan.steps.empty());
  ASSERT_TRUE(plan.steps[0].rule.empty());
  // Repeated for another number of heads each, they are other keys.
  for (AddedCall& call : plan.steps[0].calls) {
    if (call.op.kind() != OpKind::kReshape || call.op.Ints("shape").size() != 5) continue;
    call.op.Set("shape", std::vector<int64_t>{4, 1, 2, 8, 4});
  }
  plan.seal = SealOf(plan);
  EXPECT_THAT(std::string(CheckPlan(plan, rules_).message()), HasSubstr("step 0 (no rule)"));
}

TEST_F(LongContext, AttentionGathersKeysAndValues) {
  const auto made = Grid({.degrees = {.tensor = 2, .context = 2}});
  ASSERT_TRUE(made.ok()) << made.status();
  Plan plan = made->plan;
  EXPECT_EQ(AttentionOf(plan).ToString(), "f32[4:2,8:2,8:2,4]");
  plan.seal = SealOf(plan);
  EXPECT_EQ(CheckPlan(plan, rules_), absl::OkStatus());
}

const Node* FirstAttentionOf(const Plan& plan) {
  for (int id = 0; id < plan.graph.num_nodes(); ++id) {
    const Node& node = plan.graph.node({id});
    if (node.op.kind() == OpKind::kAttention) return &node;
  }
  return nullptr;
}

// All calls work in the order of stripes, and what is fed is the model's.
TEST_F(LongContext, CausalAttentionIsInStripes) {
  const auto made = Grid({.degrees = {.tensor = 2, .context = 2, .in_stripes = true}});
  ASSERT_TRUE(made.ok()) << made.status();
  Plan plan = made->plan;
  const Node* const attention = FirstAttentionOf(plan);
  ASSERT_NE(attention, nullptr);
  EXPECT_EQ(attention->op.Int("causal"), 2);
  EXPECT_EQ(attention->outputs[0].ToString(), "f32[4:2,8:2,8:2,4]");
  plan.seal = SealOf(plan);
  EXPECT_EQ(CheckPlan(plan, rules_), absl::OkStatus());
}

// A wrong number of stripes, or none, in any step that brings a call into their order.
TEST_F(LongContext, StripesThatAreChangedAreRefused) {
  const auto made = Grid({.degrees = {.context = 4, .in_stripes = true}});
  ASSERT_TRUE(made.ok()) << made.status();
  ASSERT_EQ(FirstAttentionOf(made->plan)->op.Int("causal"), 4);
  int changed = 0;
  for (size_t s = 0; s < made->plan.steps.size(); ++s) {
    for (size_t c = 0; c < made->plan.steps[s].calls.size(); ++c) {
      for (const int64_t causal : {0, 1, 2, 8}) {
        Plan plan = made->plan;
        Operator& op = plan.steps[s].calls[c].op;
        if (op.kind() != OpKind::kAttention) continue;
        op.Set("causal", causal);
        plan.seal = SealOf(plan);
        EXPECT_THAT(std::string(CheckPlan(plan, rules_).message()), HasSubstr("(no rule)"));
        ++changed;
      }
      Plan plan = made->plan;
      Operator& op = plan.steps[s].calls[c].op;
      if (op.kind() != OpKind::kTranspose || op.Ints("perm").size() < 4) continue;
      std::vector<int64_t> perm(op.Ints("perm").size());
      for (size_t i = 0; i < perm.size(); ++i) perm[i] = static_cast<int64_t>(i);
      op.Set("perm", perm);
      plan.seal = SealOf(plan);
      EXPECT_FALSE(CheckPlan(plan, rules_).ok()) << s << ", " << c;
      ++changed;
    }
  }
  EXPECT_GT(changed, 20);
}

// What is no attention of a sequence with itself, as far as it has come, is as it was.
TEST_F(LongContext, OnlyCausalAttentionIsInStripes) {
  const Model model = TextModel(R"(
%0 = input "x" : f32[4,8,32]
%1 = weight "q" : f32[32,32]
%2 = weight "o" : f32[32,32]
%3 = matmul(%0, %1) : f32[4,8,32]
%4 = reshape(%3) {shape=[4,8,8,4]} : f32[4,8,8,4]
%5 = transpose(%4) {perm=[0,2,1,3]} : f32[4,8,8,4]
%6 = attention(%5, %5, %5) {scale=0.5,causal=0} : f32[4,8,8,4]
%7 = transpose(%6) {perm=[0,2,1,3]} : f32[4,8,8,4]
%8 = reshape(%7) {shape=[4,8,32]} : f32[4,8,32]
%9 = matmul(%8, %2) : f32[4,8,32]
output "y" = %9
)");
  GridRequest request = {.degrees = {.context = 4, .in_stripes = true}};
  const auto made = Grid(model, request, /*training=*/false);
  ASSERT_TRUE(made.ok()) << made.status();
  EXPECT_TRUE(made->plan.steps.empty() || !made->plan.steps[0].rule.empty());
  request.must_be_in_stripes = true;
  EXPECT_THAT(std::string(Grid(model, request, false).status().message()),
              HasSubstr("--context_order=striped: no causal attention"));
}

// Calls that depend on where in the sequence they are cannot work in another order: each token
// keeps other features than the next.
TEST_F(LongContext, WhatDependsOnTheOrderKeepsIt) {
  const Model model = TextModel(R"(
%0 = input "x" : f32[4,8,32]
%1 = weight "q" : f32[32,32]
%2 = trilu(%0) {upper=0,k=4} : f32[4,8,32]
%3 = matmul(%2, %1) : f32[4,8,32]
%4 = reshape(%3) {shape=[4,8,8,4]} : f32[4,8,8,4]
%5 = transpose(%4) {perm=[0,2,1,3]} : f32[4,8,8,4]
%6 = attention(%5, %5, %5) {scale=0.5,causal=1} : f32[4,8,8,4]
output "y" = %6
)");
  const auto made = Grid(model, {.degrees = {.context = 4, .in_stripes = true}}, false);
  ASSERT_TRUE(made.ok()) << made.status();
  EXPECT_EQ(FirstAttentionOf(made->plan)->op.Int("causal"), 1);
}

// Heads that go round all devices leave each sequence whole.
TEST_F(LongContext, WholeSequencesAreNotInStripes) {
  const GridDegrees by_heads = {
      .tensor = 2, .context = 2, .context_by_heads = true, .in_stripes = true};
  const auto made = Grid({.degrees = by_heads});
  ASSERT_TRUE(made.ok()) << made.status();
  EXPECT_EQ(FirstAttentionOf(made->plan)->op.Int("causal"), 1);
}

// Rows of batch times sequence, of which no rule splits the sequence, keep their dims: the loss is
// split in both.
TEST_F(LongContext, LossesOfRowsKeepTheirDims) {
  Model model = TextModel(R"(
%0 = input "x" : f32[4,8,32]
%1 = weight "q" : f32[32,32]
%2 = weight "o" : f32[32,16]
%3 = input "labels" : i64[32]
%4 = matmul(%0, %1) : f32[4,8,32]
%5 = reshape(%4) {shape=[4,8,8,4]} : f32[4,8,8,4]
%6 = transpose(%5) {perm=[0,2,1,3]} : f32[4,8,8,4]
%7 = attention(%6, %6, %6) {scale=0.5,causal=1} : f32[4,8,8,4]
%8 = transpose(%7) {perm=[0,2,1,3]} : f32[4,8,8,4]
%9 = reshape(%8) {shape=[4,8,32]} : f32[4,8,32]
%10 = relu(%9) : f32[4,8,32]
%11 = reshape(%10) {shape=[32,32]} : f32[32,32]
%12 = matmul(%11, %2) : f32[32,16]
%13 = cross_entropy(%12, %3) : f32[]
output "loss" = %13
)");
  model.loss = "loss";
  for (const bool in_stripes : {false, true}) {
    SCOPED_TRACE(in_stripes);
    ExpectLossIsSplit(model, in_stripes);
  }
}

TEST_F(LongContext, OuterStridesThatAreChangedAreRefused) {
  const auto made = Grid({.degrees = {.tensor = 2, .context = 2}});
  ASSERT_TRUE(made.ok()) << made.status();
  int64_t refused = 0;
  // What is not split may have its copies on any devices.
  const auto is_harmless = [](const PlanChange& change) {
    return absl::StrContains(change.what, "without its outer stride");
  };
  for (const PlanChange& change : ChangesOf({made->plan, rules_})) {
    if (!absl::StrContains(change.what, "outer") && !absl::StrContains(change.what, "periods")) {
      continue;
    }
    Plan plan = made->plan;
    change.change(&plan);
    plan.seal = SealOf(plan);
    const bool is_refused = !CheckPlan(plan, rules_).ok();
    EXPECT_TRUE(is_refused || is_harmless(change)) << change.what;
    refused += is_refused;
  }
  EXPECT_GE(refused, 4 * 2) << "of both tables of the rotation";
}

TEST_F(LongContext, TakesTheFasterOfBoth) {
  const GridDegrees by_sequence = {.tensor = 2, .context = 2};
  GridDegrees by_heads = by_sequence;
  by_heads.context_by_heads = true;
  const auto any = Grid({.degrees = by_sequence, .any_context = true});
  const auto sequence = Grid({.degrees = by_sequence}), heads = Grid({.degrees = by_heads});
  ASSERT_TRUE(any.ok() && sequence.ok() && heads.ok());
  EXPECT_EQ(any->plan.predicted_step_us,
            std::min(sequence->plan.predicted_step_us, heads->plan.predicted_step_us));
}

// What a launcher of Megatron-LM can be told.
TEST_F(LongContext, PlansByHeadsAreKnownAsConfigurations) {
  for (const bool by_heads : {false, true}) {
    const GridDegrees degrees = {.tensor = 2, .context = 2, .context_by_heads = by_heads};
    const auto made = Grid({.degrees = degrees});
    ASSERT_TRUE(made.ok()) << made.status();
    OptimizeOptions options;
    options.equal = AreShownEqual;
    const CostModel cost(LoadMachine("dgx_h100", 1, 8).value());
    const auto grid = GridOfPlan(made->plan, index_, cost, options);
    ASSERT_TRUE(grid.ok()) << grid.status();
    EXPECT_EQ(grid->degrees, degrees);
    const auto launch = LaunchTextOf("megatron", *grid, 8, 4, DataType::kFloat32);
    ASSERT_TRUE(launch.ok()) << launch.status();
    EXPECT_THAT(launch->text, HasSubstr(by_heads ? "--cp-comm-type a2a" : "all_gather"));
  }
}

TEST_F(LongContext, RefusesHeadsThatNothingDivides) {
  const auto made = Grid({.degrees = {.context = 16, .context_by_heads = true}});
  EXPECT_THAT(std::string(made.status().message()), HasSubstr("--context=16"));
  const auto all = Grid({.degrees = {.context = 8, .context_by_heads = true}});
  EXPECT_TRUE(all.ok()) << all.status();
  const auto none = Grid({.degrees = {.tensor = 8, .context = 1, .context_by_heads = true}});
  EXPECT_THAT(std::string(none.status().message()), HasSubstr("heads for more than 8 devices"));
}

// Two heads on four devices: each is split in its sequence, too.
TEST_F(LongContext, FewHeadsAreSplitInTheirSequence) {
  const Model model = TextModel(R"(
%0 = input "x" : f32[2,8,32]
%1 = weight "q" : f32[32,32]
%2 = weight "o" : f32[32,32]
%3 = matmul(%0, %1) : f32[2,8,32]
%4 = reshape(%3) {shape=[2,8,2,16]} : f32[2,8,2,16]
%5 = transpose(%4) {perm=[0,2,1,3]} : f32[2,2,8,16]
%6 = attention(%5, %5, %5) {scale=0.5,causal=1} : f32[2,2,8,16]
%7 = transpose(%6) {perm=[0,2,1,3]} : f32[2,8,2,16]
%8 = reshape(%7) {shape=[2,8,32]} : f32[2,8,32]
%9 = matmul(%8, %2) : f32[2,8,32]
output "y" = %9
)");
  const auto made =
      Grid(model, {.degrees = {.context = 4, .context_by_heads = true}}, /*training=*/false);
  ASSERT_TRUE(made.ok()) << made.status();
  Plan plan = made->plan;
  EXPECT_EQ(AttentionOf(plan).ToString(), "f32[2:2,2:2,8:2,16]");
  plan.seal = SealOf(plan);
  EXPECT_EQ(CheckPlan(plan, rules_), absl::OkStatus());
}

}  // namespace
}  // namespace isomer
