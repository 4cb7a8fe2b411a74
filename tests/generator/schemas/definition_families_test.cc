// Operators found as graphs of others.
#include "generator/schemas/definition_families.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "generator/assignments/trial.h"
#include "generator/schemas/part_search.h"

namespace isomer {
namespace {

std::vector<GeneralRule> FamiliesOf(OpKind kind) {
  TypeOracle oracle;
  Random random(7);
  Statistics statistics;
  return FindDefinitionFamilies(kind, &oracle, &random, &statistics);
}

bool HasParts(const std::string& call) {
  Random random(7);
  return FindParts(*ParseCall(call), &random).has_value();
}

TEST(DefinitionFamilies, SoftmaxAlongAnyAxisAtAnyRank) {
  const std::vector<GeneralRule> rules = FamiliesOf(OpKind::kSoftmax);
  ASSERT_EQ(rules.size(), 1u);
  EXPECT_EQ(
      rules[0].rule.ToString(),
      "softmax(x0; axis=i) <-> div(exp(sub(x0, reduce_max(x0; axes=[i], keepdims=1))), "
      "reduce_sum(exp(sub(x0, reduce_max(x0; axes=[i], keepdims=1))); axes=[i], keepdims=1))");
  EXPECT_EQ(rules[0].rule.ranks.size(), 4u);
}

TEST(DefinitionFamilies, AttentionIsMatMulsAndASoftmax) {
  const std::vector<GeneralRule> rules = FamiliesOf(OpKind::kAttention);
  ASSERT_EQ(rules.size(), 2u);
  const Rule& rule = rules[0].rule;
  EXPECT_THAT(rule.ToString(),
              testing::StartsWith(
                  "attention(x0, x1, x2; causal=0, scale=scale) <-> matmul(softmax(scale(matmul("
                  "x0, transpose(x1; perm=swap(-2,-1))); factor=scale); axis=-1), x2) if "));
  EXPECT_THAT(rules[1].rule.ToString(), testing::HasSubstr("softmax(add(x3, scale(matmul("));
  // Grouped heads, and batches that MatMul alone would broadcast, are no such graph.
  Binding at = rules[0].found;
  EXPECT_TRUE(Admits(rule, at));
  at.inputs[0].dims[1].size *= 2;
  EXPECT_FALSE(Admits(rule, at));
  at = rules[0].found;
  at.inputs[2].dims[0].size = 1;
  EXPECT_FALSE(Admits(rule, at));
}

TEST(DefinitionFamilies, WhatNoOtherOperatorDoesIsNotFound) {
  EXPECT_TRUE(HasParts("attention(scale=0.5) f32[2,2,4,4] f32[2,2,4,4] f32[2,2,4,2]"));
  EXPECT_FALSE(HasParts("attention(scale=0.5,causal=1) f32[2,2,4,4] f32[2,2,4,4] f32[2,2,4,2]"));
  EXPECT_FALSE(HasParts("attention(scale=0.5) f32[2,4,2,4] f32[2,2,4,4] f32[2,2,4,2]"));
  EXPECT_FALSE(HasParts("layer_norm(epsilon=0.5) f32[4,6] f32[6] f32[6]"));
  EXPECT_FALSE(HasParts("gelu f32[4,6]"));           // one statement
  EXPECT_TRUE(FamiliesOf(OpKind::kLinear).empty());  // enumerated
}

}  // namespace
}  // namespace isomer
