#include "optimizer/report/plan_dot.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "tests/optimizer/example_models.h"
#include "tests/optimizer/test_machine.h"

namespace isomer {
namespace {

using testing::HasSubstr;
using testing::Not;

// A sequential graph on device 0, every call of which takes some time.
absl::StatusOr<std::string> DrawingOf(Graph graph) {
  MappedGraph mapped{std::move(graph), {}};
  for (int i = 0; i < mapped.graph.num_nodes(); ++i) {
    mapped.views.push_back(RowMajorView(mapped.graph.node(i).outputs[0]));
  }
  NodeTimes time;
  time.forward_us = 1000;
  time.backward_us = 2000;
  const std::vector<NodeTimes> times(mapped.graph.num_nodes(), time);
  return PlanDot(mapped, times, TestMachine(1, 2));
}

TEST(PlanDot, SmallGraphsShowEveryOperatorAndLargeOnesFold) {
  const absl::StatusOr<std::string> few = DrawingOf(ResidualModel(3, 8, 16, 32).graph);
  ASSERT_TRUE(few.ok()) << few.status();
  EXPECT_THAT(*few, Not(HasSubstr("  x ")));
  const absl::StatusOr<std::string> many = DrawingOf(ResidualModel(300, 8, 16, 32).graph);
  ASSERT_TRUE(many.ok()) << many.status();
  EXPECT_THAT(*many, HasSubstr("  x 300"));
  EXPECT_THAT(*many, HasSubstr("1 ms forward, 2 ms backward each"));
  EXPECT_THAT(*many, HasSubstr("devices 0"));
  EXPECT_LT(many->size(), 10000);
}

TEST(PlanDot, HostileNamesAreQuoted) {
  Graph graph;
  const TensorRef x = graph.AddInput("x\"];\n\\N", SequentialType({4, 4}));
  graph.AddOutput("y\"", graph.AddOp(Operator(OpKind::kRelu), {x}, "a\\l\"b").value());
  const absl::StatusOr<std::string> dot = DrawingOf(std::move(graph));
  ASSERT_TRUE(dot.ok()) << dot.status();
  EXPECT_THAT(*dot, HasSubstr("x\\\"];\\n\\\\N"));
  EXPECT_THAT(*dot, HasSubstr("a\\\\l\\\"b"));
  EXPECT_THAT(*dot, HasSubstr("y\\\""));
}

}  // namespace
}  // namespace isomer
