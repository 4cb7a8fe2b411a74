#include "models/carry_states.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "pcg/ir/states.h"
#include "tests/models/text_model.h"

namespace isomer {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

// Keys of eight tokens, to which a step adds one; and a count.
constexpr char kGrowingCache[] = R"(
%0 = input "past_key_values.0.key" : f32[2,8,4]
%1 = input "x" : f32[2,1,4]
%2 = input "count" : f32[2]
%3 = concat(%0, %1) {axis=1} : f32[2,9,4]
%4 = relu(%2) : f32[2]
output "present.0.key" = %3
output "next_count" = %4
)";

std::string ErrorOf(const std::vector<std::string>& carry) {
  Model model = TextModel(kGrowingCache);
  std::vector<std::string> notes;
  return std::string(CarryStates(carry, &model, &notes).message());
}

TEST(CarryStates, PairsWhatExportersName) {
  Model model = TextModel(kGrowingCache);
  std::vector<std::string> notes;
  ASSERT_EQ(CarryStates({}, &model, &notes), absl::OkStatus());
  EXPECT_THAT(notes, ElementsAre(HasSubstr("present.0.key of past_key_values.0.key")));
  const std::vector<State> states = StatesOf(model.graph);
  ASSERT_EQ(states.size(), 1u);
  EXPECT_EQ(states[0].name, "past_key_values.0.key");
  // Of nine tokens the last eight.
  const Node& slice = model.graph.node(states[0].next.node);
  EXPECT_EQ(slice.op.kind(), OpKind::kSlice);
  EXPECT_EQ(slice.op.Ints("starts"), (std::vector<int64_t>{0, 1, 0}));
  EXPECT_EQ(model.graph.Validate(), absl::OkStatus());
}

TEST(CarryStates, TakesOthersByName) {
  Model model = TextModel(kGrowingCache);
  std::vector<std::string> notes;
  ASSERT_EQ(CarryStates({"next_count:count"}, &model, &notes), absl::OkStatus());
  EXPECT_THAT(notes, IsEmpty());
  const std::vector<State> states = StatesOf(model.graph);
  ASSERT_EQ(states.size(), 1u);
  EXPECT_EQ(states[0].name, "count");
  EXPECT_EQ(model.graph.outputs()[0].name, "present.0.key");
}

TEST(CarryStates, NoneAreMadeWhereNoneAreWanted) {
  Model model = TextModel(kGrowingCache);
  std::vector<std::string> notes;
  ASSERT_EQ(CarryStates({"none"}, &model, &notes), absl::OkStatus());
  EXPECT_THAT(StatesOf(model.graph), IsEmpty());
}

TEST(CarryStates, RefusesWhatDoesNotFit) {
  EXPECT_EQ(ErrorOf({"next_count"}), "--carry=next_count: OUTPUT:INPUT is expected, or none");
  EXPECT_EQ(ErrorOf({"next:count"}), "--carry=next:count: no output is 'next'");
  EXPECT_EQ(ErrorOf({"next_count:counts"}), "--carry=next_count:counts: no input is 'counts'");
  EXPECT_EQ(ErrorOf({"next_count:x"}),
            "--carry=next_count:x: the output is f32[2], and the input f32[2,1,4]");
  EXPECT_EQ(ErrorOf({"next_count:count", "present.0.key:count"}),
            "--carry=present.0.key:count: input 'count' has two next values");
}

}  // namespace
}  // namespace isomer
