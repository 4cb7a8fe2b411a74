#include "pcg/profile/work.h"

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

// It finds what the forward task saved.
TEST(GradientWork, GeluOfAProductDoesNotMakeItAgain) {
  const LinearCall gelu(/*activation=*/2), relu(/*activation=*/1);
  EXPECT_LT(gelu.GradientFlops({true, true, true}), 2.5 * kProduct);
  const auto saved =
      SavedBy(gelu.op, gelu.sharding.declaration, gelu.operands[0], gelu.sharding.outputs[0]);
  ASSERT_TRUE(saved.has_value());
  EXPECT_EQ(saved->elements, kRows * kOut);
  const auto bytes = [](const LinearCall& call, bool saves) {
    return ForwardWork(call.op, call.sharding, call.operands, saves).bytes;
  };
  EXPECT_EQ(bytes(gelu, true), bytes(gelu, false) + saved->bytes());
  EXPECT_EQ(bytes(relu, true), bytes(relu, false));
}

TEST(GradientNeeds, ReluOfAProductReadsItsResultAndNotItsBias) {
  const GradientNeeds needs = LinearCall(/*activation=*/1).Needs();
  EXPECT_EQ(needs.operands, std::vector<bool>({true, true, false}));
  EXPECT_EQ(needs.outputs, std::vector<bool>({true}));
}

TEST(GradientNeeds, AProductWithoutActivationReadsNoResult) {
  EXPECT_EQ(LinearCall(/*activation=*/0).Needs().outputs, std::vector<bool>({false}));
}

TEST(GradientNeeds, GeluOfAProductReadsAllThatMakesIt) {
  const GradientNeeds needs = LinearCall(/*activation=*/2).Needs();
  EXPECT_EQ(needs.operands, std::vector<bool>({true, true, true}));
  EXPECT_EQ(needs.outputs, std::vector<bool>({false}));
}

// Its gradient is of the operand and the gamma, and not of the result, which it could be made from.
TEST(GradientNeeds, BatchNormReadsTheStatisticsThatItMade) {
  const Operator op(OpKind::kBatchNormTraining, {{"epsilon", 1e-5}});
  const std::vector<TensorType> operands = {SequentialType({8, 4, 2, 2}), SequentialType({4}),
                                            SequentialType({4})};
  const Sharding sharding = *InferSharding(op, operands);
  const GradientNeeds needs = NeedsOfGradient(op, sharding.declaration, operands);
  EXPECT_EQ(needs.operands, std::vector<bool>({true, true, false}));
  EXPECT_EQ(needs.outputs, std::vector<bool>({false, true, true}));
  // x, its gradient, and y's; gamma and its gradient, beta's; the statistics and their gradients.
  constexpr int64_t kElements = 128, kChannels = 4;
  EXPECT_EQ(GradientWork(op, sharding, operands, {true, true, true}).bytes,
            4 * (3 * kElements + 7 * kChannels));
}

}  // namespace
}  // namespace isomer
