#include "pcg/work.h"

#include <gtest/gtest.h>

#include <vector>

namespace isomer {
namespace {

constexpr int64_t kRows = 8, kIn = 32, kOut = 16;

struct LinearCall {
  Operator op = OpKind::kLinear;
  std::vector<TensorType> operands = {SequentialType({kRows, kIn}), SequentialType({kIn, kOut}),
                                      SequentialType({kOut})};
  Sharding sharding;

  explicit LinearCall(int64_t activation) {
    op.Set("activation", activation);
    sharding = *InferSharding(op, operands);
  }
  double GradientFlops(const std::vector<bool>& wanted) const {
    return GradientWork(op, sharding, operands, wanted).flops;
  }
  GradientNeeds Needs() const { return NeedsOfGradient(op, sharding.declaration, operands); }
};

constexpr double kProduct = 2.0 * kRows * kIn * kOut;

TEST(GradientWork, ABiasIsNoThirdProduct) {
  const LinearCall call(/*activation=*/1);
  EXPECT_LT(call.GradientFlops({false, false, true}), kProduct / 8);
  EXPECT_LT(call.GradientFlops({true, true, true}), 2.2 * kProduct);
  EXPECT_GE(call.GradientFlops({true, true, false}), 2 * kProduct);
}

TEST(GradientWork, GeluOfAProductMakesItAgain) {
  EXPECT_GE(LinearCall(/*activation=*/2).GradientFlops({true, true, true}), 3 * kProduct);
}

TEST(GradientNeeds, ReluOfAProductReadsItsResultAndNotItsBias) {
  const GradientNeeds needs = LinearCall(/*activation=*/1).Needs();
  EXPECT_EQ(needs.operands, std::vector<bool>({true, true, false}));
  EXPECT_TRUE(needs.outputs);
}

TEST(GradientNeeds, AProductWithoutActivationReadsNoResult) {
  EXPECT_FALSE(LinearCall(/*activation=*/0).Needs().outputs);
}

TEST(GradientNeeds, GeluOfAProductReadsAllThatMakesIt) {
  const GradientNeeds needs = LinearCall(/*activation=*/2).Needs();
  EXPECT_EQ(needs.operands, std::vector<bool>({true, true, true}));
  EXPECT_FALSE(needs.outputs);
}

}  // namespace
}  // namespace isomer
