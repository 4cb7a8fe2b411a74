#include "models/partial_graph.h"

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace isomer {
namespace {

using testing::HasSubstr;

// y = relu(x w) v, with z = x + x beside it.
Graph TwoLayers() {
  Graph graph;
  const TensorRef x = graph.AddInput("x", SequentialType({2, 3}));
  const TensorRef w = graph.AddWeight("w", SequentialType({3, 4}));
  const TensorRef v = graph.AddWeight("v", SequentialType({4, 5}));
  const TensorRef h = *graph.AddOp(OpKind::kMatMul, {x, w}, "hidden");
  const TensorRef r = *graph.AddOp(OpKind::kRelu, {h}, "/relu_output_0");
  graph.AddOutput("y", *graph.AddOp(OpKind::kMatMul, {r, v}, "y"));
  graph.AddOutput("z", *graph.AddOp(OpKind::kAdd, {x, x}, "z"));
  return graph;
}

int Calls(const Graph& graph) {
  int calls = 0;
  for (int id = 0; id < graph.num_nodes(); ++id) calls += IsLeaf(graph.node(id).op.kind()) ? 0 : 1;
  return calls;
}

TEST(PartialGraph, WhatIsNotNeededIsNotThere) {
  const Graph graph = TwoLayers();
  const auto names = TensorNames(graph);
  const auto cut = CutGraph(graph, {}, {{"/relu_output_0", names.at("/relu_output_0")}});
  ASSERT_EQ(cut.status(), absl::OkStatus());
  EXPECT_EQ(Calls(*cut), 2);
  EXPECT_EQ(cut->num_nodes(), 4);  // x and w besides
}

TEST(PartialGraph, WhatMakesAFedTensorIsNotThere) {
  const Graph graph = TwoLayers();
  const auto names = TensorNames(graph);
  const auto cut = CutGraph(graph, {{"hidden", names.at("hidden")}}, {{"y", names.at("y")}});
  ASSERT_EQ(cut.status(), absl::OkStatus());
  EXPECT_EQ(Calls(*cut), 2);
  EXPECT_EQ(TensorNames(*cut).count("x"), 0u);
  EXPECT_EQ(cut->node(0).op.kind(), OpKind::kInput);
  EXPECT_EQ(cut->node(0).name, "hidden");
}

TEST(PartialGraph, AnUnknownNameIsAnsweredByThoseLikeIt) {
  const auto names = TensorNames(TwoLayers());
  const auto error = [&](const std::string& name) {
    return std::string(FindTensor(names, name).status().message());
  };
  EXPECT_THAT(error("hiden"), HasSubstr("no tensor 'hiden'; did you mean 'hidden'?"));
  EXPECT_THAT(error("relu"), HasSubstr("did you mean '/relu_output_0'?"));
  EXPECT_EQ(error("something quite different"),
            "there is no tensor 'something quite different'; what an import merged or computed "
            "itself has no name");
  EXPECT_EQ(error("w"), "");
}

}  // namespace
}  // namespace isomer
