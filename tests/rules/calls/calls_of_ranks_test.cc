#include "rules/calls/calls_of_ranks.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <string>
#include <vector>

#include "pcg/ir/examples.h"
#include "pcg/ir/type_inference.h"

namespace isomer {
namespace {

using testing::ElementsAre;

std::vector<OperatorCall> CallsOf(OpKind kind) { return CallsOfRanks(WithExamples(kind)); }

std::set<std::vector<int>> RanksOf(OpKind kind) {
  std::set<std::vector<int>> found;
  for (const OperatorCall& call : CallsOf(kind)) {
    found.insert(RanksOf(call.operands));
  }
  return found;
}

std::vector<int> RanksOfOne(OpKind kind) {
  std::vector<int> ranks;
  for (const std::vector<int>& vector : RanksOf(kind)) ranks.push_back(vector[0]);
  return ranks;
}

TEST(CallsOfRanks, HaveEveryRankThatTheOperatorTakes) {
  EXPECT_THAT(RanksOfOne(OpKind::kRelu), ElementsAre(1, 2, 3, 4, 5, 6));
  EXPECT_THAT(RanksOfOne(OpKind::kCast), ElementsAre(1, 2, 3, 4, 5, 6));
  EXPECT_THAT(RanksOfOne(OpKind::kSlice), ElementsAre(2, 3, 4, 5, 6));
  EXPECT_THAT(RanksOfOne(OpKind::kReshape), ElementsAre(2, 3, 4, 5, 6));
  // The dim that the call works along is not split; of one dim there is no call whose split shows.
  EXPECT_THAT(RanksOfOne(OpKind::kCumSum), ElementsAre(2, 3, 4, 5, 6));
  EXPECT_THAT(RanksOfOne(OpKind::kTopK), ElementsAre(2, 3, 4, 5, 6));
  EXPECT_THAT(RanksOfOne(OpKind::kTrilu), ElementsAre(2, 3, 4, 5, 6));
  EXPECT_THAT(RanksOf(OpKind::kConv2d), ElementsAre(ElementsAre(4, 4)));
  EXPECT_EQ(RanksOf(OpKind::kAdd).size(), 48);     // all pairs up to 6 but that of two scalars
  EXPECT_EQ(RanksOf(OpKind::kWhere).size(), 342);  // likewise
}

TEST(CallsOfRanks, TypeCheck) {
  for (const OpKind kind : AllOpKinds()) {
    for (const OperatorCall& call : CallsOf(kind)) {
      const auto types = InferTypes(call.op, call.operands);
      EXPECT_TRUE(types.ok()) << call.op.ToString() << ": " << types.status();
    }
  }
}

// What they do along the old dims stays.
TEST(CallsOfRanks, AttributesGoAlong) {
  const OperatorCall sum{Operator(OpKind::kReduceSum, {{"axes", std::vector<int64_t>{1, -1}},
                                                       {"keepdims", int64_t{0}}}),
                         {SequentialType({4, 6, 2})}};
  const OperatorCall turn{Operator(OpKind::kTranspose, {{"perm", std::vector<int64_t>{0, 2, 1}}}),
                          {SequentialType({4, 6, 2})}};
  std::vector<std::string> of_sum, of_turn;
  for (const OperatorCall& call : CallsOfRanks({sum})) of_sum.push_back(call.op.ToString());
  for (const OperatorCall& call : CallsOfRanks({turn})) of_turn.push_back(call.op.ToString());
  EXPECT_THAT(of_sum, testing::IsSupersetOf({"reduce_sum(axes=[1,-1],keepdims=0)",
                                             "reduce_sum(axes=[2,-1],keepdims=0)",
                                             "reduce_sum(axes=[0,-1],keepdims=0)"}));
  EXPECT_THAT(of_turn,
              testing::IsSupersetOf({"transpose(perm=[0,2,1])", "transpose(perm=[0,1,3,2])",
                                     "transpose(perm=[1,0])"}));
}

}  // namespace
}  // namespace isomer
