// What is found of kernels, and what is not.
#include "generator/schemas/kernel_families.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/match.h"
#include "absl/strings/str_join.h"
#include "generator/assignments/trial.h"

namespace isomer {
namespace {

std::vector<GeneralRule> KernelFamiliesOf(OpKind kind) {
  TypeOracle oracle;
  Random random(7);
  Statistics statistics;
  return FindKernelFamilies(kind, &oracle, &random, &statistics);
}

std::string TextOf(const std::vector<GeneralRule>& rules) {
  return absl::StrJoin(rules, "\n", [](std::string* out, const GeneralRule& general) {
    out->append(general.rule.ToString());
  });
}

TEST(KernelFamilies, AConvolutionsKernelGrowsWithItsPadding) {
  const std::string text = TextOf(KernelFamiliesOf(OpKind::kConv2d));
  for (const char* rule :
       {"conv2d(x0, x1; dilation=[1,1], groups=groups, padding=[0,0,0,0], stride=stride) <-> "
        "conv2d(x0, pad(x1; mode=0, padding=[0,0,1,1,0,0,1,1], value=0.0); dilation=[1,1], "
        "groups=groups, padding=[1,1,1,1], stride=stride)",
        "padding=[2,2,2,2], stride=stride)"}) {
    EXPECT_TRUE(absl::StrContains(text, rule)) << rule << " is not among\n" << text;
  }
  // Not with its stride, and not along channels.
  EXPECT_FALSE(absl::StrContains(text, "padding=[0,1,1,1,0,1,1,1]")) << text;
  EXPECT_FALSE(absl::StrContains(text, "stride=[2,2]")) << text;
}

// In one of its dims as far as what pads it is then the same in both: a kernel of 1 x 3 is one of
// 3 x 3. In that dim it is dense, and as it likes to be in the other.
TEST(KernelFamilies, AConvolutionsKernelGrowsInOneDim) {
  const std::string text = TextOf(KernelFamiliesOf(OpKind::kConv2d));
  for (const char* rule : {"padding=[0,1,0,1], stride=stride) <-> conv2d(x0, pad(x1; mode=0, "
                           "padding=[0,0,1,0,0,0,1,0], value=0.0);",
                           "padding=[1,0,1,0], stride=stride) <-> conv2d(x0, pad(x1; mode=0, "
                           "padding=[0,0,0,1,0,0,0,1], value=0.0);"}) {
    EXPECT_TRUE(absl::StrContains(text, rule)) << rule << " is not among\n" << text;
  }
  // Nor without what pads it.
  EXPECT_FALSE(absl::StrContains(text, "padding=padding, stride=stride) <-> conv2d(x0, pad(x1;"));
  EXPECT_FALSE(absl::StrContains(text,
                                 "padding=[0,1,0,1], stride=stride) <-> conv2d(x0, pad(x1; "
                                 "mode=0, padding=[0,0,0,1,0,0,0,1]"));
}

TEST(KernelFamilies, OnlyAKernelOfOnePlacePassesAnAveragePool) {
  int passed = 0;
  for (const GeneralRule& general : KernelFamiliesOf(OpKind::kConv2d)) {
    const Rule& rule = general.rule;
    if (!absl::StrContains(rule.origin, "passed")) continue;
    ++passed;
    EXPECT_THAT(rule.ToString(), testing::HasSubstr("size(x1,-1) == 1, size(x1,-2) == 1"));
    EXPECT_FALSE(absl::StrContains(rule.ToString(), "max_pool")) << rule.ToString();
  }
  EXPECT_GE(passed, 1);
}

TEST(KernelFamilies, RowsAreScaledAlongTheOutputsAxis) {
  const std::string conv = TextOf(KernelFamiliesOf(OpKind::kConv2d));
  EXPECT_THAT(conv, testing::HasSubstr("conv2d(x0, mul(x1, transpose(x2; perm=swap(-4,-3)));"));
  const std::string matmul = TextOf(KernelFamiliesOf(OpKind::kMatMul));
  EXPECT_THAT(matmul, testing::HasSubstr("matmul(x0, mul(x1, x2)) <-> mul(matmul(x0, x1), x2) if "
                                         "size(x2,-2) == 1"));
  // An activation between them lets no factor through.
  for (const GeneralRule& general : KernelFamiliesOf(OpKind::kLinear)) {
    EXPECT_FALSE(absl::StrContains(general.rule.origin, "scaled")) << general.rule.ToString();
  }
  EXPECT_TRUE(KernelFamiliesOf(OpKind::kGelu).empty());
  EXPECT_TRUE(KernelFamiliesOf(OpKind::kMul).empty());
}

TEST(KernelFamilies, ThreeCallsOfOneInputAreOne) {
  EXPECT_THAT(TextOf(KernelFamiliesOf(OpKind::kMatMul)),
              testing::HasSubstr("{matmul(x0, x1), matmul(x0, x2), matmul(x0, x3)} -> "));
  // Groups would mix: what one kernel makes of a group, the merged one makes of another.
  for (const GeneralRule& general : KernelFamiliesOf(OpKind::kConv2d)) {
    if (!absl::StrContains(general.rule.origin, "merged")) continue;
    EXPECT_EQ(general.rule.conditions[0].kind, Condition::Kind::kSplitsDim);
  }
}

TEST(KernelFamilies, ABatchNormIsFoldedIntoTheKernelAndABias) {
  for (OpKind kind : {OpKind::kConv2d, OpKind::kMatMul}) {
    int folded = 0;
    for (const GeneralRule& general : KernelFamiliesOf(kind)) {
      const Rule& rule = general.rule;
      if (!absl::StrContains(rule.origin, "folded")) continue;
      ++folded;
      EXPECT_EQ(rule.source.nodes.back().kind, OpKind::kBatchNorm) << rule.ToString();
      EXPECT_THAT(rule.ToString(), testing::HasSubstr("scale(x3; factor=0.0)"));
      EXPECT_THAT(rule.ToString(), testing::HasSubstr("if partials(x3) == 1"));
    }
    EXPECT_EQ(folded, 1) << OpName(kind);
  }
}

}  // namespace
}  // namespace isomer
