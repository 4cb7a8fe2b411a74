#include "optimizer/report/folded_graph.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "tests/optimizer/example_models.h"

namespace isomer {
namespace {

TEST(FoldedGraph, RepeatedLayersAreOneNode) {
  const FoldedGraph few = Fold(ResidualModel(3, 8, 16, 32).graph, /*folds=*/true);
  const FoldedGraph many = Fold(ResidualModel(30, 8, 16, 32).graph, /*folds=*/true);
  EXPECT_EQ(few.nodes.size(), many.nodes.size());
  const auto is_repeated = [](const FoldedNode& node) { return node.count == 30; };
  EXPECT_TRUE(std::any_of(many.nodes.begin(), many.nodes.end(), is_repeated));
}

TEST(FoldedGraph, EdgesLeadOnButFromLayerToLayer) {
  const FoldedGraph folded = Fold(ResidualModel(4, 8, 16, 32).graph, /*folds=*/true);
  int returning = 0;
  for (const FoldedEdge& edge : folded.edges) {
    EXPECT_EQ(edge.returns, edge.from >= edge.to);
    returning += edge.returns;
  }
  EXPECT_GT(returning, 0);
  const FoldedGraph whole = Fold(ResidualModel(4, 8, 16, 32).graph, /*folds=*/false);
  for (const FoldedEdge& edge : whole.edges) EXPECT_FALSE(edge.returns);
}

TEST(FoldedGraph, WhatTheCallerTellsApartIsApart) {
  const Graph graph = ResidualModel(4, 8, 16, 32).graph;
  const FoldedGraph folded =
      Fold(graph, /*folds=*/true, [](NodeId id) { return absl::StrCat(id.value); });
  for (const FoldedNode& node : folded.nodes) EXPECT_EQ(node.count, 1);
}

TEST(FoldedGraph, ChainsOfParallelOperatorsAreOneMove) {
  Graph graph;
  TensorRef tensor = graph.AddInput("x", SequentialType({4, 4}));
  for (OpKind kind : {OpKind::kPartition, OpKind::kCombine}) {
    tensor = graph.AddOp(Operator(kind, {{"axis", int64_t{0}}, {"degree", int64_t{2}}}), {tensor})
                 .value();
  }
  graph.AddOutput("y", graph.AddOp(Operator(OpKind::kRelu, {}), {tensor}, "relu").value());
  const FoldedGraph folded = Fold(graph, /*folds=*/true);
  ASSERT_EQ(folded.nodes.size(), 3u);
  EXPECT_EQ(folded.nodes[1].kind, FoldedNode::Kind::kMove);
  EXPECT_EQ(folded.nodes[1].label, "partition, combine");
  EXPECT_EQ(folded.nodes[1].count, 1);
  EXPECT_EQ(folded.nodes[1].first, folded.nodes[1].members);
  EXPECT_EQ(folded.nodes[1].first.size(), 2u);
  EXPECT_EQ(folded.edges.size(), 2u);
}

}  // namespace
}  // namespace isomer
