#include "optimizer/substitution/sweeps.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "optimizer/machine/machine.h"
#include "optimizer/substitution/substitution.h"
#include "pcg/support/data_path.h"

namespace isomer {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

// Matches of so many nodes each.
class Sweeps : public testing::Test {
 protected:
  void Add(int kind, float delta_us, const std::vector<int32_t>& nodes) {
    RuleMatch match;
    for (int32_t node : nodes) match.step.nodes.push_back(NodeId{node});
    steps_.push_back({.delta_us = delta_us,
                      .promise_us = delta_us,
                      .kind = kind,
                      .match = static_cast<int>(matches_.size())});
    matches_.push_back(std::move(match));
  }

  std::vector<std::vector<int>> Of(size_t most) const {
    std::vector<std::vector<int>> numbers;
    for (const std::vector<Step>& sweep : SweepsOf(steps_, matches_, most)) {
      for (numbers.emplace_back(); const Step& step : sweep) numbers.back().push_back(step.match);
    }
    return numbers;
  }

  std::deque<RuleMatch> matches_;
  std::vector<Step> steps_;
};

TEST_F(Sweeps, TakeEachNodeOnce) {
  for (int32_t first = 0; first < 4; ++first) Add(0, -1, {first, first + 1});
  EXPECT_THAT(Of(10), ElementsAre(ElementsAre(0, 2)));
}

TEST_F(Sweeps, AreOfOneKindAndOfSeveralPlaces) {
  Add(0, -1, {0});
  Add(1, -1, {1});
  EXPECT_THAT(Of(10), IsEmpty());
  Add(1, -1, {2});
  EXPECT_THAT(Of(10), ElementsAre(ElementsAre(1, 2)));
}

TEST_F(Sweeps, ThatGainMostComeFirst) {
  Add(0, -3, {0});
  Add(0, -3, {1});
  for (int32_t node = 2; node < 6; ++node) Add(1, -2, {node});
  Add(2, 1, {6});
  Add(2, 1, {7});
  EXPECT_THAT(Of(2), ElementsAre(ElementsAre(2, 3, 4, 5), ElementsAre(0, 1)));
}

TEST_F(Sweeps, AreInTheOrderOfMatches) {
  Add(0, -1, {0});
  Add(0, -1, {1});
  std::swap(steps_[0], steps_[1]);
  EXPECT_THAT(Of(1), ElementsAre(ElementsAre(0, 1)));
}

// Gates as a cell of NasRNN has them: each a sum of two products, behind an activation. Merging
// products by threes gains most at once; less is left of joining what each is a sum of.
Graph Gates(int count) {
  constexpr int64_t kSize = 512;
  Graph graph;
  const auto f32 = [](int64_t rows) { return SequentialType({rows, kSize}); };
  const TensorRef x = graph.AddInput("x", f32(1)), h = graph.AddInput("h", f32(1));
  for (int gate = 0; gate < count; ++gate) {
    const auto product = [&](TensorRef of, const char* name) {
      const TensorRef w = graph.AddWeight(absl::StrCat(name, gate), f32(kSize));
      return *graph.AddOp(OpKind::kMatMul, {of, w});
    };
    const TensorRef sum = *graph.AddOp(OpKind::kAdd, {product(x, "w"), product(h, "u")});
    const OpKind activation = gate % 2 == 0 ? OpKind::kSigmoid : OpKind::kTanh;
    graph.AddOutput(absl::StrCat("gate", gate), *graph.AddOp(activation, {sum}));
  }
  return graph;
}

TEST(SweepsOfGates, FindWhatStepsPassBy) {
  const Graph graph = Gates(8);
  const RuleSet rules = LoadRules(DataPath("rules/default.rules")).value();
  const RuleIndex index(rules);
  const CostModel cost(LoadMachine("dgx_h100", 1, 1).value());
  CostTables tables(index, cost, {.training = false});
  RuleMatcher matcher(index.algebra());
  RootMatches root_matches;
  const Piece piece = SplitGraph(graph, graph.num_nodes()).value()[0];
  SubstitutionSearch search(piece, {}, {}, &matcher, &root_matches, &tables);
  ASSERT_TRUE(search.Start({}).ok());
  const double as_it_is_us = search.best_us();
  ASSERT_TRUE(search.Continue(200).ok());
  EXPECT_FALSE(search.SweepsLead());
  const double stepwise_us = search.best_us();
  search.TakeSweeps();
  EXPECT_TRUE(search.SweepsLead());
  EXPECT_LT(search.best_us(), 0.9 * stepwise_us);
  EXPECT_LT(search.best_us(), 0.55 * as_it_is_us);
}

}  // namespace
}  // namespace isomer
