#include "pcg/ir/operator_call.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "pcg/ir/examples.h"

namespace isomer {
namespace {

using testing::ElementsAre;

TEST(OperatorCall, IsReadWithDefaultsFilledIn) {
  const absl::StatusOr<OperatorCall> call = ParseCall("linear f32[2,4,6] f32[6,2]");
  ASSERT_TRUE(call.ok()) << call.status();
  EXPECT_EQ(call->op.Int("activation"), 0);
  EXPECT_THAT(RanksOf(call->operands), ElementsAre(3, 2));
  EXPECT_TRUE(DeclarationOf(*call).ok());
}

TEST(OperatorCall, WhatIsNoneIsRefused) {
  for (const char* text : {"", "f32[4]", "relu f32[4", "relu(axis=1) f32[4]"}) {
    EXPECT_FALSE(ParseCall(text).ok()) << text;
  }
}

TEST(OperatorCall, ExamplesAreAddedOnce) {
  for (OpKind kind : AllOpKinds()) {
    const std::vector<OperatorCall> examples = WithExamples(kind);
    EXPECT_EQ(examples.size(), ExamplesOf(kind).size()) << OpName(kind);
    EXPECT_EQ(WithExamples(kind, examples), examples) << OpName(kind);
  }
}

}  // namespace
}  // namespace isomer
