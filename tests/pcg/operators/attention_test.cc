#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "tests/pcg/operators/run_operator.h"

namespace isomer {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

struct Sizes {
  int64_t b, h, hk, s, t, e, f;
};

std::vector<Tensor> RandomQkv(const Sizes& n) {
  return {Random({n.b, n.h, n.s, n.e}, 1), Random({n.b, n.hk, n.t, n.e}, 2),
          Random({n.b, n.hk, n.t, n.f}, 3)};
}

// The definition with loops. `mask` is null or of shape [b,h,s,t]; minus infinity is unseen.
Tensor ByHand(const Sizes& n, const std::vector<Tensor>& qkv, double scale, bool causal,
              const Tensor* mask) {
  Tensor y({n.b, n.h, n.s, n.f});
  for (int64_t row = 0; row < n.b * n.h * n.s; ++row) {
    const int64_t s = row % n.s, head = row / n.s % n.h, b = row / n.s / n.h;
    const int64_t key_head = b * n.hk + head / (n.h / n.hk);
    std::vector<double> weights;
    double sum = 0;
    for (int64_t t = 0; t < n.t; ++t) {
      double score = mask == nullptr ? 0 : mask->data[row * n.t + t];
      for (int64_t e = 0; e < n.e; ++e) {
        score += scale * qkv[0].data[row * n.e + e] * qkv[1].data[(key_head * n.t + t) * n.e + e];
      }
      weights.push_back(causal && t > s + n.t - n.s ? 0 : std::exp(score));
      sum += weights.back();
    }
    for (int64_t t = 0; t < n.t; ++t) {
      for (int64_t f = 0; f < n.f; ++f) {
        y.data[row * n.f + f] += weights[t] / sum * qkv[2].data[(key_head * n.t + t) * n.f + f];
      }
    }
  }
  return y;
}

TEST(Attention, IsSoftmaxOfScoresTimesValues) {
  const Sizes n = {2, 3, 3, 4, 5, 6, 2};
  const std::vector<Tensor> qkv = RandomQkv(n);
  ExpectClose(OutputOf("attention(scale=0.75)", qkv), ByHand(n, qkv, 0.75, false, nullptr));
}

TEST(Attention, QueryHeadsShareKeyHeadsInRuns) {
  const Sizes n = {2, 6, 2, 3, 4, 2, 3};
  const std::vector<Tensor> qkv = RandomQkv(n);
  ExpectClose(OutputOf("attention(scale=1.5)", qkv), ByHand(n, qkv, 1.5, false, nullptr));
}

TEST(Attention, CausalQueriesAreTheLastOfTheKeys) {
  for (const int64_t s : {1, 3, 5}) {
    const Sizes n = {1, 2, 1, s, 5, 2, 2};
    const std::vector<Tensor> qkv = RandomQkv(n);
    ExpectClose(OutputOf("attention(scale=1.5,causal=1)", qkv), ByHand(n, qkv, 1.5, true, nullptr));
  }
}

TEST(Attention, CausalIgnoresTheFuture) {
  std::vector<Tensor> qkv = RandomQkv({1, 1, 1, 4, 4, 2, 2});
  const Tensor before = OutputOf("attention(scale=1.0,causal=1)", qkv);
  // So large that the unseen score would overflow an exponential.
  for (int64_t i : {6, 7}) {
    qkv[1].data[i] = 1e6;
    qkv[2].data[i] = 1e6;
  }
  const Tensor after = OutputOf("attention(scale=1.0,causal=1)", qkv);
  for (int64_t i = 0; i < 6; ++i) EXPECT_EQ(after.data[i], before.data[i]) << i;
  EXPECT_NE(after.data[6], before.data[6]);
  // Nor does the gradient of the first three queries reach the last key.
  const Declaration d = DeclarationFor("attention(scale=1.0,causal=1)", qkv);
  const Tensor seed = Filled({1, 1, 4, 2}, {1, 1, 1, 1, 1, 1, 0, 0});
  Tensor gradients[] = {Tensor(qkv[0].shape), Tensor(qkv[1].shape), Tensor(qkv[2].shape)};
  ASSERT_TRUE(EvaluateGradient<double>(d, FullBox(d), PointersTo(qkv), {&seed},
                                       {&gradients[0], &gradients[1], &gradients[2]})
                  .ok());
  for (const Tensor& gradient : gradients) {
    EXPECT_THAT(gradient.data, testing::Each(testing::Truly([](double g) { return g - g == 0; })));
    EXPECT_EQ(gradient.data[6], 0);
    EXPECT_EQ(gradient.data[7], 0);
  }
}

TEST(Attention, MaskIsAddedToTheScores) {
  const Sizes n = {2, 2, 1, 3, 4, 2, 2};
  std::vector<Tensor> operands = RandomQkv(n);
  operands.push_back(Random({2, 2, 3, 4}, 4));
  operands[3].data[5] = -std::numeric_limits<double>::infinity();
  ExpectClose(OutputOf("attention(scale=0.5)", operands),
              ByHand(n, operands, 0.5, false, &operands[3]));
  ExpectClose(OutputOf("attention(scale=0.5,causal=1)", operands),
              ByHand(n, operands, 0.5, true, &operands[3]));
}

TEST(Attention, MasksBroadcast) {
  const Sizes n = {2, 2, 2, 3, 4, 2, 2};
  std::vector<Tensor> operands = RandomQkv(n);
  for (const std::vector<int64_t>& shape :
       {std::vector<int64_t>{}, {4}, {3, 1}, {2, 1, 1}, {2, 1, 3, 4}, {1, 2, 1, 4}}) {
    operands.resize(3);
    const Tensor mask = Random(shape, 4);
    const Tensor whole = OutputOf("expand(shape=[2,2,3,4])", {mask});
    operands.push_back(mask);
    ExpectClose(OutputOf("attention(scale=0.5)", operands),
                ByHand(n, operands, 0.5, false, &whole));
  }
}

TEST(Attention, LargeScoresDoNotOverflow) {
  const Tensor q = Filled({1, 1, 1, 1}, {1000}), k = Filled({1, 1, 2, 1}, {1, 2}),
               v = Filled({1, 1, 2, 1}, {3, 4});
  EXPECT_THAT(OutputOf("attention(scale=1.0)", {q, k, v}).data, ElementsAre(4));
}

TEST(Attention, PartitionsAllButKeysAndFeatures) {
  const std::vector<std::vector<int64_t>> sizes = {{2, 4, 4, 2}, {2, 2, 4, 2}, {2, 2, 4, 2}};
  EXPECT_THAT(PartitionableDims(*DeclareText("attention(scale=1.0,causal=1)", sizes)),
              ElementsAre("b", "g", "s", "f"));
  const Declaration d = *DeclareText("attention(scale=1.0,causal=1)", sizes);
  EXPECT_TRUE(d.IsLinearIn({false, false, true}));
  EXPECT_FALSE(d.IsLinearIn({true, false, false}));
}

TEST(Attention, RefusesWhatDoesNotFit) {
  const std::string call = "attention(scale=1.0)";
  EXPECT_THAT(ErrorOf("attention(scale=1.0,causal=1)", {{1, 1, 4, 2}, {1, 1, 3, 2}, {1, 1, 3, 2}}),
              HasSubstr("4 queries to 3 keys"));
  EXPECT_THAT(ErrorOf(call, {{1, 3, 4, 2}, {1, 2, 4, 2}, {1, 2, 4, 2}}), HasSubstr("dim h is 3"));
  EXPECT_THAT(ErrorOf(call, {{1, 2, 4, 2}, {1, 2, 4, 3}, {1, 2, 4, 2}}), HasSubstr("dim e is 2"));
  EXPECT_THAT(ErrorOf(call, {{1, 2, 4, 2}, {1, 2, 4, 2}, {1, 2, 5, 2}}), HasSubstr("dim t is 4"));
  EXPECT_THAT(ErrorOf(call, {{1, 2, 4, 2}, {1, 2, 4, 2}, {1, 2, 4, 2}, {3, 4}}),
              HasSubstr("dim s is 4 in operand 0 and 3 in operand 3"));
  EXPECT_THAT(ErrorOf(call, {{2, 4, 2}, {2, 4, 2}, {2, 4, 2}}), HasSubstr("rank 3, not 4"));
}

// cos and sin of position s times a frequency, for positions from `first`.
std::pair<Tensor, Tensor> Angles(int64_t first, int64_t positions, int64_t half) {
  Tensor cosines({positions, half}), sines({positions, half});
  for (int64_t s = 0; s < positions; ++s) {
    for (int64_t i = 0; i < half; ++i) {
      const double angle = static_cast<double>(first + s) * (0.3 + 0.4 * static_cast<double>(i));
      cosines.data[s * half + i] = std::cos(angle);
      sines.data[s * half + i] = std::sin(angle);
    }
  }
  return {cosines, sines};
}

TEST(Rotary, TurnsPairsByHand) {
  const Tensor x = Filled({1, 4}, {1, 2, 3, 4}), cosine = Filled({1, 2}, {10, 100}),
               sine = Filled({1, 2}, {1, 5});
  EXPECT_THAT(OutputOf("rotary", {x, cosine, sine}).data,
              ElementsAre(10 - 3, 200 - 20, 30 + 1, 400 + 10));
  EXPECT_THAT(OutputOf("rotary(interleaved=1)", {x, cosine, sine}).data,
              ElementsAre(10 - 2, 20 + 1, 300 - 20, 400 + 15));
}

TEST(Rotary, ScoresDependOnTheDistanceOnly) {
  const Tensor q = Random({1, 1, 1, 6}, 1), k = Random({1, 1, 1, 6}, 2);
  for (const char* const call : {"rotary", "rotary(interleaved=1)"}) {
    auto score = [&](int64_t query_at, int64_t key_at) {
      const auto [query_cos, query_sin] = Angles(query_at, 1, 3);
      const auto [key_cos, key_sin] = Angles(key_at, 1, 3);
      const Tensor product = OutputOf("mul", {OutputOf(call, {q, query_cos, query_sin}),
                                              OutputOf(call, {k, key_cos, key_sin})});
      double sum = 0;
      for (double value : product.data) sum += value;
      return sum;
    };
    EXPECT_NEAR(score(5, 2), score(9, 6), 1e-12);
    EXPECT_GT(std::abs(score(5, 2) - score(5, 3)), 1e-3);
  }
}

TEST(Rotary, RefusesWhatDoesNotFit) {
  EXPECT_THAT(ErrorOf("rotary", {{4, 6}, {4, 2}, {4, 2}}), HasSubstr("is 6 in operand 0 and 4"));
  EXPECT_THAT(ErrorOf("rotary", {{4, 6}, {4, 3}, {5, 3}}), HasSubstr("dim s is 4"));
  EXPECT_THAT(ErrorOf("rotary", {{4, 5}, {4, 3}, {4, 3}}), HasSubstr("is 5 in operand 0 and 6"));
}

// A sink is a key of zeros whose score a mask adds, and whose value is zero.
TEST(SinkAttention, IsAttentionToOneMoreKey) {
  const Sizes n = {2, 4, 2, 3, 5, 2, 3};
  const std::vector<Tensor> qkv = RandomQkv(n);
  const Tensor sinks = Random({n.h}, 4);
  std::vector<Tensor> longer = {qkv[0], Tensor({n.b, n.hk, n.t + 1, n.e}),
                                Tensor({n.b, n.hk, n.t + 1, n.f})};
  for (int o : {1, 2}) {
    const int64_t width = qkv[o].shape[3];
    for (int64_t i = 0; i < qkv[o].size(); ++i) {
      longer[o].data[i + (i / (n.t * width) + 1) * width] = qkv[o].data[i];
    }
  }
  for (const int64_t window : {0, 1, 2}) {
    for (const bool causal : {false, true}) {
      Tensor mask({n.b, n.h, n.s, n.t + 1});
      for (int64_t i = 0; i < mask.size(); ++i) {
        const int64_t t = i % (n.t + 1), s = i / (n.t + 1) % n.s;
        const bool is_far = window > 0 && t > 0 && t - 1 + window <= s + n.t - n.s;
        mask.data[i] = t == 0 ? sinks.data[i / (n.t + 1) / n.s % n.h] : is_far ? -1e30 : 0;
      }
      const std::string call = "sink_attention(scale=0.75,causal=" + std::to_string(causal) +
                               ",window=" + std::to_string(window) + ")";
      SCOPED_TRACE(call);
      Sizes with_sink = n;
      ++with_sink.t;
      ExpectClose(OutputOf(call, {qkv[0], qkv[1], qkv[2], sinks}),
                  ByHand(with_sink, longer, 0.75, causal, &mask));
    }
  }
}

}  // namespace
}  // namespace isomer
