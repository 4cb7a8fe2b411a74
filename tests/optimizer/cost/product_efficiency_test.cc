#include "optimizer/cost/product_efficiency.h"

#include <gtest/gtest.h>

#include "optimizer/machine/machine.h"
#include "pcg/support/data_path.h"

namespace isomer {
namespace {

DeviceKind A100() { return LoadMachine("dgx_a100", 1).value().kinds[0]; }

TEST(ProductEfficiency, IsOneForDevicesThatSayNothing) {
  EXPECT_EQ(ProductEfficiency(DeviceKind(), {1, 7, 7, 7}), 1);
}

TEST(ProductEfficiency, IsNeverMoreThanOneAndGrowsWithDepth) {
  const DeviceKind kind = A100();
  for (int64_t m : {1, 16, 100, 128, 1000, 8192}) {
    for (int64_t n : {1, 64, 768, 5000}) {
      double before = 0;
      for (int64_t k : {16, 64, 256, 1024, 4096, 16384}) {
        const double efficiency = ProductEfficiency(kind, {1, m, n, k});
        EXPECT_GT(efficiency, 0);
        EXPECT_LE(efficiency, 1);
        EXPECT_GE(efficiency, before) << m << " " << n << " " << k;
        before = efficiency;
      }
    }
  }
  EXPECT_GT(ProductEfficiency(kind, {1, 8192, 8192, 8192}), 0.9);
}

// 108 multiprocessors: one tile more than a wave takes two.
TEST(ProductEfficiency, TilesAreDoneInWaves) {
  const DeviceKind kind = A100();
  const double wave = ProductEfficiency(kind, {108, 256, 128, 16384});
  EXPECT_GT(wave, 0.95);
  EXPECT_LT(ProductEfficiency(kind, {109, 256, 128, 16384}), 0.8 * wave);
  // Few tiles with long sums are cut in parts.
  EXPECT_GT(ProductEfficiency(kind, {1, 256, 128, 1 << 17}), 3.0 / 108);
}

TEST(ProductEfficiency, KnowsTheProductsOfATask) {
  const std::vector<TensorType> operands = {SequentialType({2, 8, 16}), SequentialType({16, 4})};
  const auto forward = ProductsOf(OpKind::kMatMul, operands, {});
  ASSERT_EQ(forward.size(), 1u);
  EXPECT_EQ(forward[0].batch, 1);
  EXPECT_EQ(forward[0].m, 16);
  EXPECT_EQ(forward[0].n, 4);
  EXPECT_EQ(forward[0].k, 16);
  const auto backward = ProductsOf(OpKind::kMatMul, operands, {true, true});
  ASSERT_EQ(backward.size(), 2u);
  EXPECT_EQ(backward[0].k, 4);   // of the other's columns
  EXPECT_EQ(backward[1].k, 16);  // of all rows
  const auto batched =
      ProductsOf(OpKind::kMatMul,
                 std::vector<TensorType>{SequentialType({6, 8, 16}), SequentialType({6, 16, 4})},
                 {false, true});
  ASSERT_EQ(batched.size(), 1u);
  EXPECT_EQ(batched[0].batch, 6);
  EXPECT_EQ(batched[0].k, 8);
  EXPECT_TRUE(ProductsOf(OpKind::kRelu, operands, {}).empty());
}

TEST(AttentionFactor, CausalKernelsSkipHalfAndSmallHeadsAreSlower) {
  const DeviceKind kind = A100();
  const auto factor = [&](int64_t causal, int64_t head) {
    const Operator op(OpKind::kAttention, {{"causal", causal}, {"scale", 1.0}});
    const std::vector<TensorType> operands(3, SequentialType({1, 8, 4096, head}));
    return AttentionFactor(kind, op, operands, false).value();
  };
  EXPECT_NEAR(factor(1, 128) / factor(0, 128), 0.5, 0.05);
  EXPECT_GT(factor(0, 64), factor(0, 128));
  EXPECT_FALSE(AttentionFactor(DeviceKind(), OpKind::kAttention, {}, false).has_value());
}

// Of T keys, S late queries see all but a half of the last S.
TEST(AttentionFactor, PiecesOfCausalAttentionCostWhatTheWholeDoes) {
  const auto cost = [kind = A100()](int64_t queries, int64_t keys) {
    const Operator op(OpKind::kAttention, {{"causal", int64_t{1}}, {"scale", 1.0}});
    const std::vector<TensorType> operands = {SequentialType({1, 8, queries, 128}),
                                              SequentialType({1, 8, keys, 128}),
                                              SequentialType({1, 8, keys, 128})};
    return AttentionFactor(kind, op, operands, false).value() * static_cast<double>(queries * keys);
  };
  constexpr int64_t kAll = 1 << 17, kHalf = kAll / 2;
  EXPECT_NEAR((cost(kHalf, kHalf) + cost(kHalf, kAll)) / cost(kAll, kAll), 1, 0.01);
  EXPECT_NEAR(cost(kHalf, kAll) / cost(kHalf, kHalf), 3, 0.01);
}

// Split in its queries, it is as slow as the device with the last of them.
TEST(AttentionFactor, TheLastDeviceOfSplitQueriesSeesMost) {
  const Operator op(OpKind::kAttention, {{"causal", int64_t{1}}, {"scale", 1.0}});
  const auto factor = [&](int64_t devices) {
    std::vector<TensorType> operands(3, SequentialType({1, 8, 1 << 17, 128}));
    operands[0].dims[2].degree = devices;
    return AttentionFactor(A100(), op, operands, false).value();
  };
  EXPECT_NEAR(factor(2) / factor(1), 1.5, 0.01);
  EXPECT_NEAR(factor(16) / factor(1), 2 - 1.0 / 16, 0.01);
}

// In stripes, every device has as much to do as it would have of one that sees half.
TEST(AttentionFactor, DevicesWithStripesSeeHalf) {
  std::vector<TensorType> operands(3, SequentialType({1, 8, 1 << 17, 128}));
  const auto factor = [&](int64_t causal) {
    const Operator op(OpKind::kAttention, {{"causal", causal}, {"scale", 1.0}});
    return AttentionFactor(A100(), op, operands, false).value();
  };
  const double whole = factor(1);
  operands[0].dims[2].degree = 16;
  EXPECT_NEAR(factor(16) / whole, 1, 0.02);
  // Blocks of queries are longer, of more stripes.
  EXPECT_GT(factor(1024), 1.5 * factor(16));
}

TEST(AttentionFactor, AWindowSkipsAllBlocksBeforeIt) {
  const auto factor = [kind = A100()](int64_t window) {
    const Operator op(OpKind::kSinkAttention,
                      {{"causal", int64_t{1}}, {"scale", 1.0}, {"window", window}});
    std::vector<TensorType> operands(3, SequentialType({1, 8, 4096, 64}));
    operands.push_back(SequentialType({8}));
    return AttentionFactor(kind, op, operands, false).value();
  };
  EXPECT_NEAR(factor(128) / factor(0), 256 / (4096 * 0.5), 0.01);
  EXPECT_EQ(factor(4096), factor(0));
}

}  // namespace
}  // namespace isomer
