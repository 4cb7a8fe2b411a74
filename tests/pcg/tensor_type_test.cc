#include "pcg/tensor_type.h"

#include <gtest/gtest.h>

#include "pcg/plan.h"

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

TEST(MachineView, DevicesFollowStrides) {
  const TensorType type = *ParseTensorType("f32[8:2,16] c2");
  EXPECT_EQ(DevicesOf({.start = 1, .strides = {4, 0, 1, 0}}, type),
            (std::vector<int64_t>{1, 2, 5, 6}));
}

TEST(MachineView, RowMajorPutsShardIOnDeviceI) {
  const TensorType type = *ParseTensorType("f32[8:2,16,6:3] c2 p2");
  std::vector<int64_t> expected(24);
  for (int i = 0; i < 24; ++i) expected[i] = i;
  EXPECT_EQ(DevicesOf(RowMajorView(type), type), expected);
}

TEST(MachineView, RefusesCollisionsAndStrangers) {
  const TensorType type = *ParseTensorType("f32[8:2,16] c2");
  EXPECT_TRUE(ValidateView({0, {2, 0, 1, 0}}, type, 4).ok());
  EXPECT_FALSE(ValidateView({0, {1, 0, 1, 0}}, type, 4).ok()) << "two tasks on one device";
  EXPECT_FALSE(ValidateView({0, {3, 0, 1, 0}}, type, 4).ok()) << "device 4 of 4";
  EXPECT_FALSE(ValidateView({0, {-1, 0, 1, 0}}, type, 4).ok()) << "device -1";
  EXPECT_FALSE(ValidateView({0, {2, 1}}, type, 4).ok()) << "too few strides";
  EXPECT_FALSE(ValidateView({INT64_MAX, {2, 0, INT64_MAX, 0}}, type, 4).ok()) << "overflow";
}

}  // namespace
}  // namespace isomer
