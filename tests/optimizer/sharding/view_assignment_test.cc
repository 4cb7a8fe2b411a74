#include "optimizer/sharding/view_assignment.h"

#include <gtest/gtest.h>

#include <map>
#include <vector>

#include "optimizer/sharding/sharding_choice.h"
#include "pcg/ir/graph.h"

namespace isomer {
namespace {

// A tensor that two stages of a pipeline read is copied where it is made, and sent on from there:
// the stage that makes it must not wait for the next, whichever reads it first.
TEST(AssignViews, WhatSeveralStagesReadIsAtTheFirst) {
  const auto graph = ParseGraph(R"(
%0 = input "x" : f32[4,8]
%1 = relu(%0) : f32[4,8]
%2 = replicate(%1) {degree=2} : f32[4,8] c2
%3 = tanh(%2) : f32[4,8] c2
%4 = relu(%2) : f32[4,8] c2
output "later" = %3
output "same" = %4
)");
  ASSERT_TRUE(graph.ok()) << graph.status();
  const auto choice = [&](int id, int64_t start) {
    const Node& node = graph->node({id});
    ShardingChoice made;
    made.start = start;
    const MachineView view{start, {0, 0, id == 1 ? 0 : 1, 0}};
    made.operands = {{graph->type(node.inputs[0]), view}};
    made.outputs = {{node.outputs[0], view}};
    return made;
  };
  const ShardingChoice makes = choice(1, 0), later = choice(3, 2), same = choice(4, 0);
  const std::vector<MachineView> views =
      AssignViews(*graph, {{{1}, &makes}, {{3}, &later}, {{4}, &same}});
  EXPECT_EQ(views[2].start, 0);
  EXPECT_EQ(views[3].start, 2);
  // Where nobody is at that stage, it is made where it is read.
  const std::vector<MachineView> sent =
      AssignViews(*graph, {{{1}, &makes}, {{3}, &later}, {{4}, &later}});
  EXPECT_EQ(sent[2].start, 2);
}

}  // namespace
}  // namespace isomer
