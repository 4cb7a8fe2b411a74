#include "pcg/ir/states.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace isomer {
namespace {

Graph GraphOfText(const std::string& text) {
  absl::StatusOr<Graph> graph = ParseGraph(text);
  EXPECT_TRUE(graph.ok()) << graph.status();
  return graph.ok() ? *std::move(graph) : Graph();
}

constexpr char kCounter[] = R"(
%0 = input "count" : f32[2,4]
%1 = input "x" : f32[2,4]
%2 = add(%0, %1) : f32[2,4]
output "y" = %2
output "count" = %2
output "x" = %1
)";

TEST(States, AreOutputsWithTheNameOfAnInput) {
  const Graph graph = GraphOfText(kCounter);
  const std::vector<State> states = StatesOf(graph);
  // x is handed through.
  ASSERT_EQ(states.size(), 1u);
  EXPECT_EQ(states[0].name, "count");
  EXPECT_EQ(states[0].input, NodeId{0});
  EXPECT_EQ(states[0].next, (TensorRef{NodeId{2}, 0}));
  EXPECT_EQ(BytesOfStates(graph), 32);
  EXPECT_EQ(CheckStates(graph), absl::OkStatus());
}

TEST(States, TheHostGetsTheOthers) {
  const Graph graph = GraphOfText(kCounter);
  const auto outputs = OutputsForHost(graph, /*training=*/false);
  ASSERT_EQ(outputs.size(), 2u);
  EXPECT_EQ(outputs[0].name, "y");
  EXPECT_EQ(outputs[1].name, "x");
  EXPECT_EQ(OutputsForHost(graph, /*training=*/true).size(), 3u);
}

TEST(States, HaveOneType) {
  const Graph graph = GraphOfText(R"(
%0 = input "count" : f32[2,4]
%1 = reduce_sum(%0) {axes=[0], keepdims=1} : f32[1,4]
output "count" = %1
)");
  EXPECT_EQ(std::string(CheckStates(graph).message()),
            "state 'count' is f32[2,4], and in the next step f32[1,4]");
}

}  // namespace
}  // namespace isomer
