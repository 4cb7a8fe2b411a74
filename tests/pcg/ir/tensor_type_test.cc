#include "pcg/ir/tensor_type.h"

#include <gtest/gtest.h>

#include "pcg/ir/plan.h"

namespace isomer {
namespace {

TEST(TensorType, TextFormRoundTrips) {
  for (const char* text : {"f32[]", "f32[8:2,16]", "i64[4] c3", "f32[6:3,2] c2 p4 mb5"}) {
    absl::StatusOr<TensorType> type = ParseTensorType(text);
    ASSERT_TRUE(type.ok()) << type.status();
    EXPECT_EQ(type->ToString(), text);
  }
}

TEST(TensorType, RefusesWhatCannotBe) {
  for (const char* text :
       {"f32", "f32[", "f33[2]", "f32[2:x]", "f32[6:4]", "f32[0]", "f32[-1]", "f32[2] p0",
        "f32[1000000000,1000000000]", "f32[2] q3", "f32[2] c99999999"}) {
    EXPECT_FALSE(ParseTensorType(text).ok()) << text;
  }
  EXPECT_TRUE(ValidateTensorType(SequentialType(std::vector<int64_t>(64, 1))).ok());
  EXPECT_FALSE(ValidateTensorType(SequentialType(std::vector<int64_t>(65, 1))).ok());
}

TEST(TensorType, GradientExchangesCopiesAndPartials) {
  EXPECT_EQ(GradientType(*ParseTensorType("f32[4:2] c2")).ToString(), "f32[4:2] p2");
  EXPECT_EQ(GradientType(*ParseTensorType("f32[4] p4")).ToString(), "f32[4] c4");
}

}  // namespace
}  // namespace isomer
