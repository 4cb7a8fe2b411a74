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

TEST(States, AreReadBySomebody) {
  const Graph graph = GraphOfText(R"(
%0 = input "count" : f32[4]
%1 = input "x" : f32[4]
%2 = relu(%1) : f32[4]
output "count" = %2
)");
  EXPECT_TRUE(StatesOf(graph).empty());
  EXPECT_EQ(OutputsForHost(graph, /*training=*/false).size(), 1u);
  // Another state's next value is a use.
  const Graph handed_on = GraphOfText(R"(
%0 = input "last" : f32[4]
%1 = input "before" : f32[4]
%2 = relu(%1) : f32[4]
output "before" = %0
output "last" = %2
)");
  EXPECT_EQ(StatesOf(handed_on).size(), 2u);
  EXPECT_EQ(CheckStates(handed_on), absl::OkStatus());
}

TEST(States, HaveOneNextValue) {
  const Graph graph = GraphOfText(R"(
%0 = input "count" : f32[4]
%1 = relu(%0) : f32[4]
%2 = exp(%0) : f32[4]
output "count" = %1
output "count" = %2
)");
  EXPECT_EQ(std::string(CheckStates(graph).message()), "state 'count' has two next values");
}

// By the end of a step it is the next one; what is computed of it before is not.
TEST(States, AreNoOutputsAsTheyWere) {
  const std::string text = R"(
%0 = input "count" : f32[4]
%1 = partition(%0) {axis=0, degree=2} : f32[4:2]
%2 = relu(%1) : f32[4:2]
%3 = combine(%2) {axis=0, degree=2} : f32[4]
%4 = combine(%1) {axis=0, degree=2} : f32[4]
output "count" = %3
)";
  for (const char* old : {"%0", "%4"}) {
    const Graph graph = GraphOfText(text + "output \"old\" = " + old + "\n");
    EXPECT_EQ(std::string(CheckStates(graph).message()),
              "output 'old' is state 'count' as it was, which the step writes over");
  }
  EXPECT_EQ(CheckStates(GraphOfText(text + "output \"twice\" = %3\n")), absl::OkStatus());
}

}  // namespace
}  // namespace isomer
