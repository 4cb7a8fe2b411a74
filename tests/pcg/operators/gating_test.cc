#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "pcg/evaluation/number.h"
#include "tests/pcg/operators/run_operator.h"

namespace isomer {
namespace {

using testing::HasSubstr;

struct GateSizes {
  int64_t g, s, e, c;
};

Tensor RandomGates(const GateSizes& n, uint64_t seed) {
  return OutputOf("softmax", {Random({n.g, n.s, n.e}, seed)});
}

// GShard's algorithm 1, step by step over the tokens of each group.
std::vector<Tensor> StepByStep(const GateSizes& n, const Tensor& gates, int64_t seed, bool random) {
  Tensor combine({n.g, n.s, n.e, n.c}), aux({n.g});
  for (int64_t g = 0; g < n.g; ++g) {
    std::vector<int64_t> taken(n.e, 0), first(n.s), second(n.s);
    auto gate = [&](int64_t s, int64_t e) { return gates.data[(g * n.s + s) * n.e + e]; };
    auto combine_at = [&](int64_t s, int64_t e, int64_t c) -> double& {
      return combine.data[((g * n.s + s) * n.e + e) * n.c + c];
    };
    auto share = [&](int64_t s, int64_t e) {
      return gate(s, e) / (gate(s, first[s]) + gate(s, second[s]));
    };
    for (int64_t s = 0; s < n.s; ++s) {
      for (int64_t e = 0; e < n.e; ++e) {
        if (gate(s, e) > gate(s, first[s])) first[s] = e;
      }
      second[s] = first[s] == 0 ? 1 : 0;
      for (int64_t e = 0; e < n.e; ++e) {
        if (e != first[s] && gate(s, e) > gate(s, second[s])) second[s] = e;
      }
    }
    for (int64_t s = 0; s < n.s; ++s) {
      const int64_t position = taken[first[s]]++;
      if (position < n.c) combine_at(s, first[s], position) = share(s, first[s]);
    }
    for (int64_t e = 0; e < n.e; ++e) {
      double mean = 0;
      for (int64_t s = 0; s < n.s; ++s) mean += gate(s, e) / static_cast<double>(n.s);
      aux.data[g] += static_cast<double>(taken[e]) / static_cast<double>(n.s) * mean;
    }
    for (int64_t s = 0; s < n.s; ++s) {
      const double w = share(s, second[s]);
      const int64_t position = taken[second[s]]++;
      const double uniform = random ? Number<double>::Random(static_cast<double>(seed),
                                                             static_cast<double>(g * n.s + s))
                                    : 0;
      if (position < n.c && 2 * w > uniform) combine_at(s, second[s], position) = w;
    }
  }
  return {combine, aux};
}

TEST(Top2Gating, IsTheAlgorithm) {
  for (const GateSizes& n : {GateSizes{2, 8, 4, 3}, {1, 12, 3, 5}, {3, 5, 2, 5}, {1, 9, 6, 1}}) {
    for (uint64_t seed = 1; seed <= 5; ++seed) {
      const Tensor gates = RandomGates(n, seed);
      for (const bool random : {true, false}) {
        const std::string call = "top2_gating(capacity=" + std::to_string(n.c) +
                                 ",random=" + (random ? "1" : "0") + ",salt=3)";
        SCOPED_TRACE(call + " seed " + std::to_string(seed));
        const std::vector<Tensor> y =
            OutputsOf(call, {gates, Filled({}, {static_cast<double>(seed)})});
        const std::vector<Tensor> expected =
            StepByStep(n, gates, static_cast<int64_t>(seed) + 3, random);
        ASSERT_EQ(y.size(), 2u);
        ExpectClose(y[0], expected[0]);
        ExpectClose(y[1], expected[1]);
      }
    }
  }
}

TEST(Top2Gating, NoExpertTakesMoreThanItsCapacity) {
  const GateSizes n = {2, 16, 4, 3};
  const Tensor y =
      OutputOf("top2_gating(capacity=3,random=0)", {RandomGates(n, 1), Filled({}, {0})});
  for (int64_t g = 0; g < n.g; ++g) {
    for (int64_t slot = 0; slot < n.e * n.c; ++slot) {
      int tokens = 0;
      for (int64_t s = 0; s < n.s; ++s) tokens += y.data[(g * n.s + s) * n.e * n.c + slot] > 0;
      EXPECT_LE(tokens, 1) << "slot " << slot;
    }
  }
}

TEST(Top2Gating, WithRoomForAllWeightsSumToOneOverTwoExperts) {
  const GateSizes n = {2, 6, 4, 12};
  const Tensor y =
      OutputOf("top2_gating(capacity=12,random=0)", {RandomGates(n, 1), Filled({}, {0})});
  for (int64_t token = 0; token < n.g * n.s; ++token) {
    double sum = 0;
    std::vector<int> of_expert(n.e);
    for (int64_t e = 0; e < n.e; ++e) {
      for (int64_t c = 0; c < n.c; ++c) {
        const double weight = y.data[(token * n.e + e) * n.c + c];
        sum += weight;
        of_expert[e] += weight > 0;
      }
    }
    EXPECT_NEAR(sum, 1, 1e-12);
    EXPECT_THAT(of_expert, testing::UnorderedElementsAre(0, 0, 1, 1));
  }
}

TEST(Top2Gating, OfEqualGatesTakesTheFirstTwo) {
  const Tensor y =
      OutputOf("top2_gating(capacity=2,random=0)", {Tensor({1, 1, 4}, 0.25), Filled({}, {0})});
  EXPECT_THAT(y.data, testing::ElementsAre(0.5, 0, 0.5, 0, 0, 0, 0, 0));
}

TEST(Top2Gating, SecondExpertsAreTakenByTheirWeight) {
  // Second weight 0.125: a quarter of 4000 tokens go to it, with a standard deviation of 27.
  Tensor gates({4000, 1, 2});
  for (int64_t i = 0; i < 4000; ++i) {
    gates.data[2 * i] = 0.125;
    gates.data[2 * i + 1] = 0.875;
  }
  const Tensor y = OutputOf("top2_gating(capacity=1)", {gates, Filled({}, {1})});
  int taken = 0;
  for (int64_t i = 0; i < 4000; ++i) taken += y.data[2 * i] > 0;
  EXPECT_NEAR(taken, 1000, 5 * 27);
}

TEST(Top2Gating, RefusesWhatDoesNotFit) {
  EXPECT_THAT(ErrorOf("top2_gating(capacity=2)", {{2, 4, 1}, {}}), HasSubstr("fewer than 2"));
  EXPECT_THAT(ErrorOf("top2_gating(capacity=0)", {{2, 4, 2}, {}}), HasSubstr("capacity of 0"));
  EXPECT_THAT(ErrorOf("top2_gating(capacity=2)", {{4, 2}, {}}), HasSubstr("rank 2, not 3"));
  EXPECT_THAT(ErrorOf("top2_gating(capacity=2)", {{2, 4, 2}, {1}}), HasSubstr("rank 1, not 0"));
}

// Token by token: each choice takes the next slot of its expert.
std::vector<Tensor> RoutedStepByStep(const GateSizes& n, int64_t k, const Tensor& scores,
                                     const Tensor& bias) {
  Tensor weights({n.g, n.s, k}), slots({n.g, n.s, k}), tokens({n.g, n.e, n.c});
  for (int64_t g = 0; g < n.g; ++g) {
    std::vector<int64_t> taken(n.e, 0);
    for (int64_t s = 0; s < n.s; ++s) {
      std::vector<int64_t> order(n.e);
      std::iota(order.begin(), order.end(), 0);
      const auto score = [&](int64_t e) { return scores.data[(g * n.s + s) * n.e + e]; };
      std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) {
        return score(a) + bias.data[a] > score(b) + bias.data[b];
      });
      double sum = 0;
      for (int64_t r = 0; r < k; ++r) sum += score(order[r]);
      for (int64_t r = 0; r < k; ++r) {
        const int64_t e = order[r], place = taken[e]++, at = (g * n.s + s) * k + r;
        if (place >= n.c) continue;
        weights.data[at] = score(e) / sum;
        slots.data[at] = static_cast<double>(e * n.c + place);
        tokens.data[(g * n.e + e) * n.c + place] = static_cast<double>(s);
      }
    }
  }
  return {weights, slots, tokens};
}

TEST(TopKRouting, IsTheLoopOverTokens) {
  for (const GateSizes& n : {GateSizes{2, 8, 4, 3}, {1, 12, 6, 2}, {3, 5, 3, 5}}) {
    for (const int64_t k : {1, 2, 3}) {
      const Tensor scores = RandomGates(n, 3), bias = Random({n.e}, 5);
      const std::string call =
          "topk_routing(k=" + std::to_string(k) + ",capacity=" + std::to_string(n.c) + ")";
      SCOPED_TRACE(call);
      for (const bool biased : {false, true}) {
        const std::vector<Tensor> y =
            biased ? OutputsOf(call, {scores, bias}) : OutputsOf(call, {scores});
        const std::vector<Tensor> expected =
            RoutedStepByStep(n, k, scores, biased ? bias : Tensor({n.e}));
        ASSERT_EQ(y.size(), 3u);
        for (int o = 0; o < 3; ++o) ExpectClose(y[o], expected[o]);
        if (biased) continue;
        // The same in two dims of groups.
        Tensor in_two({1, n.g, n.s, n.e});
        in_two.data = scores.data;
        const std::vector<Tensor> of_two = OutputsOf(call, {in_two});
        for (int o = 0; o < 3; ++o) EXPECT_EQ(of_two[o].data, y[o].data);
      }
    }
  }
}

TEST(TopKRouting, Errors) {
  EXPECT_THAT(ErrorOf("topk_routing(k=4,capacity=2)", {{2, 4, 3}}), HasSubstr("k 4 of 3 experts"));
  EXPECT_THAT(ErrorOf("topk_routing(k=2,capacity=0)", {{2, 4, 3}}), HasSubstr("a capacity of 0"));
  EXPECT_THAT(ErrorOf("topk_routing(k=2,capacity=1)", {{2, 4, 3}, {4}}), HasSubstr("dim e"));
}

}  // namespace
}  // namespace isomer
