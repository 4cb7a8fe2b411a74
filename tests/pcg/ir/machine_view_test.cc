#include "pcg/ir/machine_view.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace isomer {
namespace {

using Numbers = std::vector<int64_t>;

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

TEST(MachineView, LastDeviceIsTheGreatest) {
  TensorType type = SequentialType({24, 6});
  type.dims[0].degree = 12;
  type.dims[1].degree = 2;
  type.copies = 3;
  for (const MachineView& view :
       {MachineView{.start = 5, .strides = {2, 1, 24, 0}},
        MachineView{.start = 0, .strides = {1, 0, 4, 0}, .moments = {3, 1, 1, 1}},
        MachineView{.start = 2, .strides = {0, 0, 0, 0}, .moments = {12, 2, 3, 1}}}) {
    const std::vector<int64_t> devices = DevicesOf(view, type);
    EXPECT_EQ(LastDevice(view, type), *std::max_element(devices.begin(), devices.end()))
        << view.ToString();
  }
}

TEST(MachineView, NeighboursAreDevicesOfOneMicroBatch) {
  const TensorType type = *ParseTensorType("f32[24:6,16] c2");
  const MachineView view{.start = 1, .strides = {4, 0, 1, 0}, .moments = {3, 1, 1, 1}};
  EXPECT_EQ(ValidateView(view, type, 7), absl::OkStatus());
  EXPECT_EQ(NumMoments(view), 3);
  EXPECT_EQ(DevicesOf(view, type), (Numbers{1, 2, 5, 6, 1, 2, 5, 6, 1, 2, 5, 6}));
  EXPECT_EQ(MomentsOf(view, type), (Numbers{0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2}));
}

// A table that is split in a sequence, beside a batch split outside of it and heads within.
TEST(MachineView, CopiesMayWalkInTwoStrides) {
  const TensorType type = *ParseTensorType("f32[8:4,16] c4");
  const MachineView view{.strides = {2, 0, 1, 0}, .outer = {{.axis = 2, .period = 2, .stride = 8}}};
  EXPECT_EQ(ValidateView(view, type, 16), absl::OkStatus());
  EXPECT_EQ(DevicesOf(view, type), (Numbers{0, 1, 8, 9, 2, 3, 10, 11, 4, 5, 12, 13, 6, 7, 14, 15}));
  EXPECT_EQ(LastDevice(view, type), 15);
  for (int64_t copy = 0; copy < 4; ++copy) {
    EXPECT_EQ(view.CoordinateAt(2, view.OffsetOf(2, copy)), copy);
  }
  // Beside micro-batches, which are no devices.
  MachineView in_time = view;
  in_time.moments = {2, 1, 1, 1};
  EXPECT_EQ(DevicesOf(in_time, type),
            (Numbers{0, 1, 8, 9, 2, 3, 10, 11, 0, 1, 8, 9, 2, 3, 10, 11}));
}

TEST(MachineView, RefusesOuterStridesThatAreNone) {
  const TensorType type = *ParseTensorType("f32[8:4,16] c4");
  const auto holds = [&](std::vector<OuterStride> outer, Numbers strides = {2, 0, 1, 0}) {
    return ValidateView({.strides = strides, .outer = std::move(outer)}, type, 16).ok();
  };
  ASSERT_TRUE(holds({{2, 2, 8}}));
  EXPECT_FALSE(holds({})) << "copies 2 and 3 on devices of other shards";
  EXPECT_FALSE(holds({{2, 2, 4}})) << "the same";
  EXPECT_FALSE(holds({{2, 2, 16}})) << "leaves the machine";
  EXPECT_FALSE(holds({{2, 2, INT64_MAX}})) << "overflow";
  EXPECT_FALSE(holds({{2, INT64_MAX, 8}})) << "overflow";
  EXPECT_FALSE(holds({{2, 2, -8}})) << "backwards";
  EXPECT_FALSE(holds({{2, 2, 2}}, {4, 0, 1, 0})) << "no outer stride: 4 neighbours";
  EXPECT_FALSE(holds({{2, 2, 1}}, {4, 0, 2, 0})) << "the inner one is larger";
  EXPECT_FALSE(holds({{2, 3, 8}})) << "no part of 4";
  EXPECT_FALSE(holds({{2, 4, 8}})) << "one period";
  EXPECT_FALSE(holds({{2, 1, 8}})) << "one device in a period";
  EXPECT_FALSE(holds({{2, 0, 8}})) << "none";
  EXPECT_FALSE(holds({{1, 2, 8}, {2, 2, 8}})) << "an axis that is not split";
  EXPECT_FALSE(holds({{4, 2, 8}})) << "no axis";
  EXPECT_FALSE(holds({{-1, 2, 8}})) << "no axis";
  EXPECT_FALSE(holds({{2, 2, 8}, {2, 2, 8}})) << "twice";
}

TEST(MachineView, CoarserAxesKeepTheFirstOfNeighbours) {
  const MachineView fine{.strides = {4, 0, 1, 0},
                         .outer = {{.axis = 2, .period = 4, .stride = 32}}};
  const auto coarsened = [&](int64_t degree) {
    MachineView view = fine;
    return CoarsenAxis(2, degree, &view) ? view.ToString() : "none";
  };
  EXPECT_EQ(coarsened(2), "start 0 strides [4,0,2,0] axis 2 in periods of 2 every 32");
  EXPECT_EQ(coarsened(4), "start 0 strides [4,0,32,0]");
  EXPECT_EQ(coarsened(8), "start 0 strides [4,0,64,0]");
  EXPECT_EQ(coarsened(6), "none");
}

TEST(MachineView, MomentsOfSeveralAxesCountRowMajor) {
  const TensorType type = *ParseTensorType("f32[4:2,9:3]");
  const MachineView view{.strides = {0, 0, 0, 0}, .moments = {2, 3, 1, 1}};
  EXPECT_EQ(ValidateView(view, type, 1), absl::OkStatus());
  EXPECT_EQ(DevicesOf(view, type), Numbers(6, 0));
  EXPECT_EQ(MomentsOf(view, type), (Numbers{0, 1, 2, 3, 4, 5}));
}

TEST(MachineView, WithoutMomentsAllTasksAreAtOne) {
  const TensorType type = *ParseTensorType("f32[8:2,16] c2");
  const MachineView view = RowMajorView(type);
  EXPECT_EQ(NumMoments(view), 1);
  EXPECT_EQ(MomentsOf(view, type), Numbers(4, 0));
}

TEST(MachineView, RefusesMomentsThatDoNotFit) {
  const TensorType type = *ParseTensorType("f32[8:4,16]");
  const auto verdict = [&](Numbers strides, Numbers moments, int64_t devices) {
    return std::string(
        ValidateView({.strides = strides, .moments = moments}, type, devices).message());
  };
  EXPECT_EQ(verdict({1, 0, 0, 0}, {2, 1, 1, 1}, 2), "");
  EXPECT_NE(verdict({1, 0, 0, 0}, {3, 1, 1, 1}, 4).find("3 moments of an axis of 4"),
            std::string::npos);
  EXPECT_NE(verdict({1, 0, 0, 0}, {0, 1, 1, 1}, 4), "");
  EXPECT_NE(verdict({1, 0, 0, 0}, {-2, 1, 1, 1}, 4), "");
  EXPECT_NE(verdict({1, 0, 0, 0}, {2}, 4), "") << "too few moments";
  EXPECT_NE(verdict({1, 0, 0, 0}, {2, 1, 1, 1}, 1), "") << "two devices of one";
  EXPECT_NE(verdict({0, 0, 0, 0}, {2, 1, 1, 1}, 2), "")
      << "tasks 0 and 2 share a device and a moment";
}

TEST(MachineView, NodesAgreeOnTheNumberOfMicroBatches) {
  const Graph graph = *ParseGraph(R"(
%0 = input "x" : f32[8,4]
%1 = partition(%0) {axis=0, degree=4} : f32[8:4,4]
%2 = relu(%1) : f32[8:4,4]
output "y" = %2
)");
  MachineView none{.strides = {0, 0, 0, 0}}, two{.strides = {1, 0, 0, 0}, .moments = {2, 1, 1, 1}},
      four{.strides = {0, 0, 0, 0}, .moments = {4, 1, 1, 1}};
  EXPECT_EQ(*NumMicroBatches(graph, {none, two, two}), 2);
  EXPECT_EQ(*NumMicroBatches(graph, {none, none, none}), 1);
  const auto refused = NumMicroBatches(graph, {none, two, four});
  EXPECT_NE(std::string(refused.status().message()).find("4 micro-batches, and others 2"),
            std::string::npos)
      << refused.status();
}

}  // namespace
}  // namespace isomer
