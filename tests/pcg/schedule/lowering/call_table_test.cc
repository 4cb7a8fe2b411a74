#include "pcg/schedule/lowering/call_table.h"

#include <gtest/gtest.h>

#include "tests/pcg/schedule/parallel_graphs.h"

namespace isomer {
namespace {

constexpr char kCalls[] = R"(
%0 = input "x" : f32[8,4]
%1 = weight "u" : f32[4,16]
%2 = weight "v" : f32[4,16]
%3 = matmul(%0, %1) : f32[8,16]
%4 = matmul(%0, %2) : f32[8,16]
%5 = partition(%0) {axis=0, degree=2} : f32[8:2,4]
%6 = replicate(%1) {degree=2} : f32[4,16] c2
%7 = matmul(%5, %6) : f32[8:2,16]
%8 = transpose(%0) {perm=[1,0]} : f32[4,8]
%9 = transpose(%0) {perm=[0,1]} : f32[8,4]
output "a" = %3
output "b" = %4
output "c" = %7
output "d" = %8
output "e" = %9
)";

class CallTableTest : public testing::Test {
 protected:
  void SetUp() override {
    for (int id : {3, 4, 7, 8, 9}) ASSERT_TRUE(table_.Add(graph_, NodeId{id}).ok());
  }

  const Graph graph_ = Parsed(kCalls);
  CallTable table_{graph_.num_nodes()};
};

TEST_F(CallTableTest, EqualCallsAreOne) {
  EXPECT_EQ(&table_.ShardingOf({3}), &table_.ShardingOf({4}));
  EXPECT_EQ(&table_.NeedsOf({3}), &table_.NeedsOf({4}));
  EXPECT_EQ(&table_.GradientWorkOf({3}, {true, false}), &table_.GradientWorkOf({4}, {true, false}));
}

TEST_F(CallTableTest, TypesAndAttributesTellCallsApart) {
  EXPECT_NE(&table_.ShardingOf({3}), &table_.ShardingOf({7}));
  EXPECT_EQ(table_.ShardingOf({7}).degrees[0], 2);
  EXPECT_EQ(table_.ForwardWorkOf({3}).flops, 2 * table_.ForwardWorkOf({7}).flops);
  EXPECT_EQ(table_.ShardingOf({8}).outputs[0], graph_.type({{8}, 0}));
  EXPECT_EQ(table_.ShardingOf({9}).outputs[0], graph_.type({{9}, 0}));
}

TEST_F(CallTableTest, LeavesAreNoCalls) {
  EXPECT_EQ(table_.num_nodes(), graph_.num_nodes());
  EXPECT_FALSE(table_.Contains({0}));
  EXPECT_TRUE(table_.Contains({9}));
}

TEST_F(CallTableTest, WantedOperandsTellGradientsApart) {
  const double one = table_.GradientWorkOf({3}, {true, false}).flops;
  EXPECT_EQ(table_.GradientWorkOf({3}, {true, true}).flops, 2 * one);
}

}  // namespace
}  // namespace isomer
