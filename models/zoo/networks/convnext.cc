#include <vector>

#include "absl/strings/str_cat.h"
#include "models/zoo/blocks/convolution_blocks.h"
#include "models/zoo/blocks/transformer_blocks.h"
#include "models/zoo/models.h"

namespace isomer {
namespace {

constexpr double kEpsilonOfConvnext = 1e-6;

// [batch, channels, height, width] with channels last, and back.
TensorRef ChannelsLast(ModelBuilder& b, TensorRef x, const std::string& name) {
  return b.Transpose(x, {0, 2, 3, 1}, name + "/channels_last");
}
TensorRef ChannelsFirst(ModelBuilder& b, TensorRef x, const std::string& name) {
  return b.Transpose(x, {0, 3, 1, 2}, name + "/channels_first");
}

// x + scale * layers(depthwise convolution of x), all but the convolution with channels last.
TensorRef Block(ModelBuilder& b, TensorRef x, const std::string& name) {
  const int64_t channels = b.Size(x, 1);
  TensorRef y =
      Convolution(b, x, channels, ConvolutionWindow::Centred(7, 7), name + "/depthwise", channels);
  y = ChannelsLast(b, ChannelBias(b, y, name + "/depthwise"), name);
  y = LayerNorm(b, y, name + "/norm", kEpsilonOfConvnext);
  y = FeedForward(b, y, 4 * channels, OpKind::kGelu, name + "/feed_forward");
  const TensorRef scale = b.Weight(name + "/scale.weight", {channels});
  y = b.Call(OpKind::kMul, {y, scale}, name + "/scaled");
  return b.Add(x, ChannelsFirst(b, y, name), name);
}

TensorRef NormOfChannels(ModelBuilder& b, TensorRef x, const std::string& name) {
  return ChannelsFirst(b, LayerNorm(b, ChannelsLast(b, x, name), name, kEpsilonOfConvnext), name);
}

absl::StatusOr<Model> BuildConvnext(const ZooArguments& arguments) {
  ModelBuilder b;
  const int64_t side = arguments.at("side"), width = arguments.at("width");
  TensorRef x = b.Input("image", {arguments.at("batch"), 3, side, side});
  x = ChannelBias(b, Convolution(b, x, width, ConvolutionWindow::Square(4, 4), "stem"), "stem");
  x = NormOfChannels(b, x, "stem/norm");
  for (int64_t stage = 0; stage < arguments.at("stages"); ++stage) {
    const std::string name = absl::StrCat("stage", stage + 1);
    if (stage > 0) {
      x = NormOfChannels(b, x, name + "/norm");
      x = Convolution(b, x, width << stage, ConvolutionWindow::Square(2, 2), name + "/smaller");
      x = ChannelBias(b, x, name + "/smaller");
    }
    const int64_t blocks = arguments.at(absl::StrCat("blocks", stage + 1));
    for (int64_t block = 0; block < blocks; ++block) {
      x = Block(b, x, absl::StrCat(name, "/block", block));
    }
  }
  x = LayerNorm(b, GlobalAvgPool(b, x, "pool"), "norm", kEpsilonOfConvnext);
  b.Output("logits", b.Dense(x, arguments.at("classes"), "classifier"));
  return b.Build();
}

}  // namespace

ZooModel ConvNext() {
  return {.name = "convnext",
          .description = "ConvNeXt, by default ConvNeXt-T; logits of 1000 classes",
          .parameters = {{.name = "stages", .value = 4, .largest = 4},
                         ZooCount("blocks1", 3),
                         ZooCount("blocks2", 3),
                         ZooCount("blocks3", 9),
                         ZooCount("blocks4", 3),
                         {.name = "width", .value = 96, .largest = 65536},
                         {.name = "side", .value = 224, .largest = 4096},
                         {.name = "classes", .value = 1000},
                         {.name = "batch", .value = 256}},
          .build = BuildConvnext,
          .small =
              "stages=2&blocks1=1&blocks2=1&blocks3=1&blocks4=1&width=16&side=32&classes=16&"
              "batch=16",
          .source = "Liu et al., 2022 (A ConvNet for the 2020s), section 3",
          .published_parameters = 28589128,
          .notes = "no stochastic depth; the count is torchvision's"};
}

}  // namespace isomer
