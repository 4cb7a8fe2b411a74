// Which buffers have their channels innermost.
#include "pcg/schedule/layout.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <string>
#include <vector>

#include "absl/algorithm/container.h"
#include "pcg/schedule/check/check.h"
#include "pcg/schedule/memory/packing.h"
#include "tests/pcg/schedule/parallel_graphs.h"

namespace isomer {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

// The nodes whose tensors, or gradients of them, have their channels innermost.
std::set<int> ChannelsLast(const Schedule& schedule) {
  std::set<int> nodes;
  for (const Buffer& buffer : schedule.buffers) {
    if (buffer.layout == Layout::kChannelsLast) nodes.insert(buffer.tensor.node.value);
  }
  for (const Buffer& buffer : schedule.buffers) {
    EXPECT_EQ(nodes.contains(buffer.tensor.node.value), buffer.layout == Layout::kChannelsLast);
  }
  return nodes;
}

TEST(Layout, OnlyChannelsAndSpaceHaveTwo) {
  EXPECT_TRUE(HasLayouts({1, 2, 3}));
  EXPECT_TRUE(HasLayouts({2, 3, 4, 1}));
  EXPECT_TRUE(HasLayouts({2, 3, 1, 1, 2}));
  EXPECT_FALSE(HasLayouts({2, 3}));
  EXPECT_FALSE(HasLayouts({2, 1, 4, 4}));
  EXPECT_FALSE(HasLayouts({2, 3, 1, 1}));
  EXPECT_FALSE(HasLayouts({2, 3, 4, 4, 4, 4}));
}

TEST(Layout, DimsLieWithChannelsInnermost) {
  const Box box = {{0, 4, 8, 1}, {2, 3, 5, 7}};
  EXPECT_EQ(InMemory(box, Layout::kRowMajor), box);
  EXPECT_EQ(InMemory(box, Layout::kChannelsLast), (Box{{0, 8, 1, 4}, {2, 5, 7, 3}}));
}

LayoutUse UseOf(const std::string& op, std::vector<std::vector<int64_t>> sizes) {
  absl::StatusOr<Operator> parsed = ParseOperator(op);
  EXPECT_TRUE(parsed.ok()) << parsed.status();
  std::vector<TensorType> operands;
  for (std::vector<int64_t>& of_one : sizes) operands.push_back(SequentialType(std::move(of_one)));
  const auto outputs = InferTypes(*parsed, operands);
  EXPECT_TRUE(outputs.ok()) << outputs.status();
  return LayoutUseOf(*parsed, operands, *outputs);
}

TEST(Layout, CallsSayWhatTheyTake) {
  EXPECT_EQ(
      UseOf("conv2d(stride=[1,1],padding=[0,0,0,0],dilation=[1,1])", {{2, 4, 3, 3}, {4, 4, 1, 1}}),
      LayoutUse::kEach);
  EXPECT_EQ(UseOf("relu", {{2, 4, 3, 3}}), LayoutUse::kTogether);
  EXPECT_EQ(UseOf("add", {{2, 4, 3, 3}, {1, 4, 1, 1}}), LayoutUse::kTogether);
  EXPECT_EQ(UseOf("add", {{2, 4, 3, 3}, {4, 1, 1}}), LayoutUse::kTogether);
  // Its dims are named otherwise than those of the other operand.
  EXPECT_EQ(UseOf("add", {{2, 4, 3, 3}, {4, 3, 3}}), LayoutUse::kRowMajor);
  EXPECT_EQ(UseOf("reduce_mean(axes=[0,2,3],keepdims=0)", {{2, 4, 3, 3}}), LayoutUse::kTogether);
  EXPECT_EQ(UseOf("reduce_mean(axes=[0],keepdims=0)", {{2, 4, 3, 3}}), LayoutUse::kRowMajor);
  EXPECT_EQ(UseOf("reshape(shape=[2,36])", {{2, 4, 3, 3}}), LayoutUse::kRowMajor);
  EXPECT_EQ(UseOf("transpose(perm=[0,2,3,1])", {{2, 4, 3, 3}}), LayoutUse::kRowMajor);
  EXPECT_EQ(UseOf("softmax(axis=1)", {{2, 4, 3, 3}}), LayoutUse::kRowMajor);
}

// Two blocks of a network; what is fed and the last, which a Reshape takes, are row-major.
constexpr char kNetwork[] = R"(
%0 = input "x" : f32[4,3,6,6]
%1 = weight "v" : f32[8,3,3,3]
%2 = weight "w" : f32[8,8,1,1]
%3 = input "labels" : i64[4]
%4 = weight "u" : f32[288,5]
%5 = conv2d(%0, %1) {stride=[1,1], padding=[1,1,1,1], dilation=[1,1]} : f32[4,8,6,6]
%6 = relu(%5) : f32[4,8,6,6]
%7 = reduce_mean(%6) {axes=[0,2,3], keepdims=1} : f32[1,8,1,1]
%8 = sub(%6, %7) : f32[4,8,6,6]
%9 = conv2d(%8, %2) {stride=[1,1], padding=[0,0,0,0], dilation=[1,1]} : f32[4,8,6,6]
%10 = add(%9, %9) : f32[4,8,6,6]
%11 = reshape(%10) {shape=[4,288]} : f32[4,288]
%12 = matmul(%11, %4) : f32[4,5]
%13 = cross_entropy(%12, %3) : f32[]
output "loss" = %13
)";

TEST(Layout, RegionsBetweenConvolutionsHaveOne) {
  EXPECT_THAT(ChannelsLast(LoweredOn(Parsed(kNetwork), 1)), ElementsAre(5, 6, 8));
}

TEST(Layout, WithoutConvolutionsNothingIsTurned) {
  const Graph graph = Parsed(R"(
%0 = input "x" : f32[4,8,6,6]
%1 = weight "w" : f32[1,8,6,6]
%2 = input "target" : f32[4,8,6,6]
%3 = add(%0, %1) : f32[4,8,6,6]
%4 = relu(%3) : f32[4,8,6,6]
%5 = mse(%4, %2) : f32[]
output "loss" = %5
)");
  EXPECT_THAT(ChannelsLast(LoweredOn(graph, 1)), IsEmpty());
}

TEST(Layout, WhatTheHostReadsIsRowMajor) {
  std::string text(kNetwork);
  text += "output \"y\" = %6\n";
  EXPECT_THAT(ChannelsLast(LoweredOn(Parsed(text), 1)), IsEmpty());
}

// Channels of an image go from both devices to samples of it, between two convolutions.
const std::string& Moved() {
  const auto& graphs = ExampleGraphs();
  return absl::c_find_if(
             graphs, [](const ExampleGraph& graph) { return graph.name == "ChannelsThenSamples"; })
      ->parallel;
}

TEST(Layout, MovesKeepIt) {
  const Graph graph = Parsed(Moved());
  const Schedule schedule = LoweredOn(graph, 2);
  const std::set<int> turned = ChannelsLast(schedule);
  for (int node : {6, 7, 9, 11}) EXPECT_TRUE(turned.contains(node)) << node;
  EXPECT_FALSE(turned.contains(4));
}

// Slices of channels lie side by side in an image that is row-major, if it is of one sample.
TEST(Layout, PiecesLieSideBySideAsTheyLie) {
  Schedule schedule;
  for (int64_t first : {0, 4}) {
    schedule.buffers.push_back(
        {.role = BufferRole::kActivation, .tensor = {}, .box = {{0, first, 0, 0}, {1, 4, 3, 3}}});
  }
  const BufferId ids[] = {0, 1};
  const Box whole = {{0, 0, 0, 0}, {1, 8, 3, 3}};
  EXPECT_TRUE(LieSideBySide(schedule, whole, ids, 2));
  for (Buffer& buffer : schedule.buffers) buffer.layout = Layout::kChannelsLast;
  EXPECT_FALSE(LieSideBySide(schedule, InMemory(whole, Layout::kChannelsLast), ids, 2));
}

// Every buffer, turned alone: the checker finds it, but where a convolution and a mean of planes
// alone use it, which take either layout.
TEST(Layout, CheckFindsWhatIsMovedBetweenLayouts) {
  for (const bool is_moved : {false, true}) {
    const Graph graph = Parsed(is_moved ? Moved() : kNetwork);
    const Schedule schedule = LoweredOn(graph, is_moved ? 2 : 1);
    for (size_t id = 0; id < schedule.buffers.size(); ++id) {
      Schedule turned = schedule;
      Buffer& buffer = turned.buffers[id];
      buffer.layout =
          buffer.layout == Layout::kRowMajor ? Layout::kChannelsLast : Layout::kRowMajor;
      const bool is_taken = is_moved && buffer.tensor.node.value == 11;
      EXPECT_EQ(CheckSchedule(graph, turned).ok(), is_taken)
          << "buffer " << id << " of " << graph.Label(buffer.tensor.node);
    }
  }
}

TEST(Layout, CheckSaysWhatIsWrong) {
  const Graph graph = Parsed(Moved());
  Schedule schedule = LoweredOn(graph, 2);
  const auto buffer_of = [&](int node) -> Buffer& {
    return *absl::c_find_if(schedule.buffers,
                            [&](const Buffer& b) { return b.tensor.node.value == node; });
  };
  buffer_of(9).layout = Layout::kRowMajor;
  EXPECT_THAT(std::string(CheckSchedule(graph, schedule).message()),
              HasSubstr("its buffers have different layouts"));
  schedule = LoweredOn(graph, 2);
  buffer_of(5).layout = Layout::kChannelsLast;
  EXPECT_THAT(std::string(CheckSchedule(graph, schedule).message()), HasSubstr("is not row-major"));
  schedule = LoweredOn(graph, 2);
  buffer_of(12).layout = Layout::kChannelsLast;
  EXPECT_THAT(std::string(CheckSchedule(graph, schedule).message()),
              HasSubstr("of f32[2:2,4] has one layout"));
}

}  // namespace
}  // namespace isomer
