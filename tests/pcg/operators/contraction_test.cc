#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "tests/pcg/operators/run_operator.h"

namespace isomer {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

TEST(Linear, IsMatMulThenBiasThenActivation) {
  const Tensor x = Random({2, 3, 4}, 1), w = Random({4, 5}, 2), bias = Random({5}, 3);
  const Tensor sum = OutputOf("add", {OutputOf("matmul", {x, w}), bias});
  ExpectClose(OutputOf("linear", {x, w}), OutputOf("matmul", {x, w}));
  ExpectClose(OutputOf("linear", {x, w, bias}), sum);
  const char* const activations[] = {"relu", "gelu", "tanh", "sigmoid", "swish"};
  for (int i = 0; i < 5; ++i) {
    SCOPED_TRACE(activations[i]);
    ExpectClose(OutputOf(absl::StrCat("linear(activation=", i + 1, ")"), {x, w, bias}),
                OutputOf(activations[i], {sum}));
  }
}

TEST(Linear, SumsOverKInEveryTask) {
  EXPECT_THAT(PartitionableDims(*DeclareText("linear", {{4, 6}, {6, 2}, {2}})),
              ElementsAre("i0", "n"));
}

TEST(Linear, RefusesWhatDoesNotFit) {
  EXPECT_THAT(ErrorOf("linear", {{4, 6}, {5, 2}}), HasSubstr("dim k is 6"));
  EXPECT_THAT(ErrorOf("linear", {{4, 6}, {6, 2}, {3}}), HasSubstr("dim n is 2"));
  EXPECT_THAT(ErrorOf("linear(activation=6)", {{4, 6}, {6, 2}}), HasSubstr("activation 6"));
  EXPECT_THAT(ErrorOf("linear(activation=-1)", {{4, 6}, {6, 2}}), HasSubstr("activation -1"));
}

TEST(Convolution, OneDimByHand) {
  const Tensor x = Filled({1, 1, 5}, {1, 2, 3, 4, 5}), w = Filled({1, 1, 2}, {10, 1});
  EXPECT_THAT(OutputOf("conv1d(stride=[1],padding=[0,0],dilation=[1])", {x, w}).data,
              ElementsAre(12, 23, 34, 45));
  EXPECT_THAT(OutputOf("conv1d(stride=[2],padding=[1,0],dilation=[1])", {x, w}).data,
              ElementsAre(1, 23, 45));
  EXPECT_THAT(OutputOf("conv1d(stride=[1],padding=[0,2],dilation=[2])", {x, w}).data,
              ElementsAre(13, 24, 35, 40, 50));
}

TEST(Convolution, ThreeDimsWithAFlatKernelAreTwo) {
  Tensor x = Random({2, 4, 5, 4}, 1), w = Random({6, 2, 3, 2}, 2);
  const Tensor flat =
      OutputOf("conv2d(stride=[2,1],padding=[1,0,0,2],dilation=[1,2],groups=2)", {x, w});
  x.shape = {2, 4, 1, 5, 4}, w.shape = {6, 2, 1, 3, 2};
  x.origin.resize(5), w.origin.resize(5);
  Tensor y =
      OutputOf("conv3d(stride=[1,2,1],padding=[0,1,0,0,0,2],dilation=[1,1,2],groups=2)", {x, w});
  EXPECT_EQ(y.shape, (std::vector<int64_t>{2, 6, 1, 2, 4}));
  y.shape = flat.shape;
  ExpectClose(y, flat);
}

TEST(Convolution, PartitionsChannelsOrGroups) {
  const std::string attributes = "(stride=[1],padding=[1,1],dilation=[1],groups=";
  EXPECT_THAT(PartitionableDims(*DeclareText("conv1d" + attributes + "1)", {{2, 4, 6}, {6, 4, 3}})),
              ElementsAre("n", "o", "c", "x"));
  EXPECT_THAT(PartitionableDims(*DeclareText("conv1d" + attributes + "2)", {{2, 4, 6}, {6, 2, 3}})),
              ElementsAre("n", "g", "x"));
}

TEST(Convolution, RefusesWhatDoesNotFit) {
  const std::vector<std::vector<int64_t>> sizes = {{2, 4, 6}, {6, 4, 3}};
  EXPECT_THAT(ErrorOf("conv1d(stride=[1,1],padding=[1,1],dilation=[1])", sizes),
              HasSubstr("stride [1,1] is not 1 numbers"));
  EXPECT_THAT(ErrorOf("conv1d(stride=[0],padding=[1,1],dilation=[1])", sizes),
              HasSubstr("stride [0]"));
  EXPECT_THAT(ErrorOf("conv1d(stride=[1],padding=[1],dilation=[1])", sizes),
              HasSubstr("padding [1] is not 2 numbers"));
  EXPECT_THAT(ErrorOf("conv1d(stride=[1],padding=[0,-1],dilation=[1])", sizes),
              HasSubstr("padding [0,-1]"));
  EXPECT_THAT(ErrorOf("conv1d(stride=[1],padding=[0,0],dilation=[4611686018427387904])", sizes),
              HasSubstr("dilation [4611686018427387904]"));
  EXPECT_THAT(ErrorOf("conv1d(stride=[1],padding=[0,1],dilation=[4])", sizes),
              HasSubstr("dim x of operand 0 has size 6, 7 with padding, and the kernel spans 9"));
  EXPECT_THAT(ErrorOf("conv1d(stride=[1],padding=[1,1],dilation=[1],groups=4)", sizes),
              HasSubstr("6 channels"));
  EXPECT_THAT(ErrorOf("conv1d(stride=[1],padding=[1,1],dilation=[1],groups=2)", sizes),
              HasSubstr("channels per group"));
  EXPECT_THAT(ErrorOf("conv2d(stride=[1,1],padding=[0,0,0,0],dilation=[1,1])", sizes),
              HasSubstr("rank 3, not 4"));
}

struct Geometry {
  std::vector<int64_t> size, kernel, stride, padding, dilation;
  int64_t groups;
};

// What x gets of a gradient of the convolution's output is conv_transpose of that gradient, with
// the rest of the last stride as output_padding.
TEST(ConvTranspose, IsTheGradientOfConvolution) {
  const Geometry cases[] = {
      {{7}, {3}, {1}, {0, 0}, {1}, 1},
      {{8}, {3}, {2}, {1, 1}, {1}, 1},
      {{9}, {2}, {3}, {0, 1}, {2}, 2},
      {{5, 6}, {3, 2}, {2, 1}, {1, 0, 0, 1}, {1, 2}, 1},
      {{4, 5}, {1, 3}, {2, 2}, {0, 2, 0, 1}, {1, 1}, 4},
      {{4, 3, 5}, {2, 3, 2}, {1, 2, 3}, {1, 1, 0, 0, 1, 1}, {2, 1, 1}, 2},
  };
  for (const Geometry& c : cases) {
    SCOPED_TRACE(absl::StrJoin(c.size, ","));
    const int64_t rank = static_cast<int64_t>(c.size.size());
    auto list = [](const std::vector<int64_t>& values) {
      return absl::StrCat("[", absl::StrJoin(values, ","), "]");
    };
    std::string attributes = absl::StrCat("stride=", list(c.stride), ",padding=", list(c.padding),
                                          ",dilation=", list(c.dilation), ",groups=", c.groups);
    std::vector<int64_t> x_shape = {2, 4}, w_shape = {8, 4 / c.groups}, rest;
    for (int64_t i = 0; i < rank; ++i) {
      x_shape.push_back(c.size[i]);
      w_shape.push_back(c.kernel[i]);
      rest.push_back(
          (c.size[i] + c.padding[i] + c.padding[rank + i] - c.dilation[i] * (c.kernel[i] - 1) - 1) %
          c.stride[i]);
    }
    const std::vector<Tensor> operands = {Random(x_shape, 1), Random(w_shape, 2)};
    const Declaration d =
        DeclarationFor(absl::StrCat("conv", rank, "d(", attributes, ")"), operands);
    std::vector<int64_t> y_shape;
    for (const Extent& size : d.outputs[0]) y_shape.push_back(size.value());
    const Tensor y_gradient = Random(y_shape, 3);
    Tensor x_gradient(x_shape);
    ASSERT_TRUE(EvaluateGradient<double>(d, FullBox(d), PointersTo(operands), {&y_gradient},
                                         {&x_gradient, nullptr})
                    .ok());
    ExpectClose(
        OutputOf(absl::StrCat("conv_transpose(", attributes, ",output_padding=", list(rest), ")"),
                 {y_gradient, operands[1]}),
        x_gradient);
  }
}

TEST(ConvTranspose, PartitionsChannels) {
  const std::string call =
      "conv_transpose(stride=[2],padding=[0,0],dilation=[1],output_padding=[0]";
  const auto dims = PartitionableDims(*DeclareText(call + ")", {{2, 4, 4}, {4, 6, 2}}));
  EXPECT_THAT(dims, testing::IsSupersetOf({"n", "o", "c"}));
}

TEST(ConvTranspose, RefusesWhatDoesNotFit) {
  const std::string call = "conv_transpose(stride=[2],dilation=[1],";
  const std::vector<std::vector<int64_t>> sizes = {{2, 4, 4}, {4, 6, 3}};
  EXPECT_THAT(ErrorOf(call + "padding=[9,9],output_padding=[0])", sizes), HasSubstr("size -9"));
  EXPECT_THAT(ErrorOf(call + "padding=[0,0],output_padding=[-1])", sizes),
              HasSubstr("output_padding -1"));
  EXPECT_THAT(ErrorOf(call + "padding=[0,0],output_padding=[0,0])", sizes),
              HasSubstr("output_padding has 2 numbers"));
  EXPECT_THAT(ErrorOf(call + "padding=[0,0],output_padding=[0])", {{2, 3, 4}, {4, 6, 3}}),
              HasSubstr("dim c is 3"));
  EXPECT_THAT(ErrorOf(call + "padding=[0,0],output_padding=[0])", {{2, 4}, {4, 6}}),
              HasSubstr("rank 2, not 3 to 5"));
}

}  // namespace
}  // namespace isomer
