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

// Rows that are selected, not the table: of bags all rows of them, and a table at most once.
TEST(ForwardWork, ALookUpReadsTheRowsThatItSelects) {
  constexpr int64_t kTable = 1000, kWidth = 16, kFloat = 4, kIndex = 8;
  const auto bytes = [](const Operator& op, const std::vector<TensorType>& operands) {
    return ForwardWork(op, *InferSharding(op, operands), operands, /*saves=*/false).bytes;
  };
  const auto indices = [](const std::vector<int64_t>& sizes) {
    return SequentialType(sizes, DataType::kInt64);
  };
  const TensorType table = SequentialType({kTable, kWidth});
  EXPECT_EQ(bytes(OpKind::kEmbedding, {table, indices({10})}), 10 * (2 * kWidth * kFloat + kIndex));
  EXPECT_EQ(bytes({OpKind::kEmbeddingBag, {{"mean", int64_t{0}}}}, {table, indices({10, 5})}),
            10 * (5 * kWidth * kFloat + 5 * kIndex + kWidth * kFloat));
  const TensorType rows = SequentialType({2, kTable, kWidth});
  EXPECT_EQ(bytes(OpKind::kGatherRows, {rows, indices({2, 10})}),
            20 * (2 * kWidth * kFloat + kIndex));
  EXPECT_EQ(bytes(OpKind::kGatherSum, {rows, indices({2, 10, 5}), SequentialType({2, 10, 5})}),
            20 * (5 * kWidth * kFloat + 5 * kIndex + 5 * kFloat + kWidth * kFloat));
  EXPECT_EQ(bytes(OpKind::kGatherRows, {rows, indices({2, 5000})}),
            2 * (kTable * kWidth * kFloat + 5000 * (kIndex + kWidth * kFloat)));
}

// A row of a cache, whatever the cache's size; in training the operand is copied first.
TEST(ForwardWork, ARowIsWrittenIntoACache) {
  constexpr int64_t kRow = 2 * 4 * 16, kCache = 1000 * kRow;
  const Operator op(OpKind::kScatterElements, {{"axis", int64_t{2}}, {"reduction", int64_t{0}}});
  const std::vector<TensorType> operands = {SequentialType({2, 4, 1000, 16}),
                                            SequentialType({2, 4, 1, 16}, DataType::kInt64),
                                            SequentialType({2, 4, 1, 16})};
  const Sharding sharding = *InferSharding(op, operands);
  const Work in_place = ForwardWork(op, sharding, operands);
  EXPECT_EQ(in_place.bytes, kRow * (8 + 2 * 4));
  EXPECT_EQ(in_place.flops, 0);
  EXPECT_EQ(ForwardWork(op, sharding, operands, /*saves=*/true).bytes,
            4 * 2 * kCache + kRow * (8 + 4));
}

// Of 8 experts two tokens use two at most.
TEST(ForwardWork, FewRowsReadFewMatrices) {
  const Operator op(OpKind::kGatherMatMul);
  const auto bytes = [&](int64_t rows) {
    const std::vector<TensorType> operands = {SequentialType({rows, 16}),
                                              SequentialType({8, 16, 32}),
                                              SequentialType({rows}, DataType::kInt64)};
    return ForwardWork(op, *InferSharding(op, operands), operands).bytes -
           rows * (4 * 16 + 4 * 32 + 8);
  };
  EXPECT_EQ(bytes(2), 4 * 2 * 16 * 32);
  EXPECT_EQ(bytes(100), 4 * 8 * 16 * 32);
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
