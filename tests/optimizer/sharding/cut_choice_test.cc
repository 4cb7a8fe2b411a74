#include "optimizer/sharding/cut_choice.h"

#include <string>

#include <gtest/gtest.h>

#include "optimizer/sharding/rule_index.h"
#include "optimizer/substitution/splitting.h"
#include "pcg/support/data_path.h"

namespace isomer {
namespace {

TEST(CutChoice, TakesTheCutThatFewestMatchesSpan) {
  // Behind operators 3, 5 and 7 of 12; pieces of at least four.
  const std::vector<int> cuts = {3, 5, 7};
  EXPECT_EQ(ChooseCuts(cuts, {0, 0, 0}, 12, 4), (std::vector<int>{0, 2}));
  EXPECT_EQ(ChooseCuts(cuts, {2, 0, 2}, 12, 4), (std::vector<int>{1}));
  EXPECT_TRUE(ChooseCuts(cuts, {2, 1, 3}, 12, 4).empty());
}

TEST(CutChoice, LargePiecesAreCutThoughMatchesAreLost) {
  std::vector<int> cuts;
  std::vector<double> spanning;
  for (int i = 0; i + 1 < 200; ++i) {
    cuts.push_back(i);
    spanning.push_back(i % 10 == 4 ? 1 : 3);
  }
  const std::vector<int> chosen = ChooseCuts(cuts, spanning, 200, 5);
  EXPECT_GE(chosen.size(), 3u);
  for (int c : chosen) EXPECT_EQ(c % 10, 4);
}

TEST(CutChoice, NothingToCutIsOnePiece) {
  EXPECT_TRUE(ChooseCuts({}, {}, 7, 5).empty());
  EXPECT_TRUE(ChooseCuts({2}, {0}, 4, 5).empty());
}

// A chain of  relu(x W + b)  has cuts everywhere; products belong with their bias and relu.
TEST(CutChoice, AProductKeepsItsBiasAndItsRelu) {
  auto rules = LoadRules(DataPath("rules/default.rules"));
  ASSERT_TRUE(rules.ok()) << rules.status();
  std::vector<const Rule*> algebra;
  for (const Rule& rule : rules->rules) {
    if (!UsesParallelOperators(rule)) algebra.push_back(&rule);
  }
  for (const Rule& rule : rules->inverses()) {
    if (!UsesParallelOperators(rule)) algebra.push_back(&rule);
  }
  RuleMatcher matcher(algebra);
  Graph graph;
  TensorRef x = graph.AddInput("x", SequentialType({64, 32}));
  for (int layer = 0; layer < 8; ++layer) {
    const std::string name = "layer" + std::to_string(layer);
    const TensorRef weight = graph.AddWeight(name + "/w", SequentialType({32, 32}));
    const TensorRef bias = graph.AddWeight(name + "/b", SequentialType({32}));
    x = graph.AddOp(OpKind::kMatMul, {x, weight}).value();
    x = graph.AddOp(OpKind::kAdd, {x, bias}).value();
    x = graph.AddOp(OpKind::kRelu, {x}).value();
  }
  graph.AddOutput("y", x);
  const auto pieces = SplitGraph(graph, 5, nullptr, &matcher);
  ASSERT_TRUE(pieces.ok()) << pieces.status();
  EXPECT_GT(pieces->size(), 1u);
  for (const Piece& piece : *pieces) {
    if (!piece.has_out) continue;
    EXPECT_EQ(graph.node(piece.out.node).op.kind(), OpKind::kRelu);
  }
}

}  // namespace
}  // namespace isomer
