#include <algorithm>
#include <cmath>
#include <iterator>

#include "absl/strings/str_cat.h"
#include "models/zoo/blocks/convolution_blocks.h"
#include "models/zoo/models.h"

namespace isomer {
namespace {

constexpr double kEpsilonOfUnet = 1e-6;
constexpr double kDropout = 0.1;
constexpr int64_t kMultiples[] = {1, 2, 2, 2};  // Of the channels, at each resolution.
constexpr int64_t kLevels = std::size(kMultiples);

class UnetNetwork {
 public:
  explicit UnetNetwork(const ZooArguments& arguments)
      : arguments_(arguments),
        batch_(arguments.at("batch")),
        channels_(arguments.at("channels")),
        attention_side_(arguments.at("attention_side")),
        dropout_(arguments.at("dropout") == 1 ? kDropout : 0) {}

  absl::StatusOr<Model> Build() {
    const int64_t side = arguments_.at("side"), coarsest = int64_t{1} << (kLevels - 1);
    if (side % coarsest != 0) {
      b_.Fail(
          absl::InvalidArgumentError(absl::StrCat("side=", side, " is no multiple of ", coarsest)));
    }
    const TensorRef image = b_.Input("image", {batch_, 3, side, side});
    time_ = TimeEmbedding();
    std::vector<TensorRef> skipped = Down(image);
    TensorRef x = skipped.back();
    x = Residual(x, b_.Size(x, 1), "middle/block0");
    x = Residual(Attention(x, "middle/attention"), b_.Size(x, 1), "middle/block1");
    x = Up(x, std::move(skipped));
    b_.Output("noise",
              Conv(NormSwish(x, "output"), 3, ConvolutionWindow::Square(3, 1, 1), "output"));
    return b_.Build();
  }

 private:
  TensorRef Conv(TensorRef x, int64_t outputs, const ConvolutionWindow& window,
                 const std::string& name) {
    return ChannelBias(b_, Convolution(b_, x, outputs, window, name), name);
  }
  TensorRef Norm(TensorRef x, const std::string& name) {
    const int64_t channels = b_.Size(x, 1);
    const TensorRef gamma = b_.Weight(name + ".weight", {channels});
    const TensorRef beta = b_.Weight(name + ".bias", {channels});
    return b_.Call(
        {OpKind::kGroupNorm, {{"groups", arguments_.at("groups")}, {"epsilon", kEpsilonOfUnet}}},
        {x, gamma, beta}, name);
  }
  TensorRef Swish(TensorRef x, const std::string& name) {
    return b_.Call(OpKind::kSwish, {x}, name + "/swish");
  }
  TensorRef NormSwish(TensorRef x, const std::string& name) {
    return Swish(Norm(x, name + "/norm"), name);
  }

  // Sines and cosines of the step (Vaswani et al., 2017) through two layers, and the swish before
  // the projection of every block: [batch, 4 * channels].
  TensorRef TimeEmbedding() {
    const int64_t half = channels_ / 2;
    std::vector<float> frequencies;
    for (int64_t i = 0; i < half; ++i) {
      frequencies.push_back(
          static_cast<float>(std::exp(-std::log(10000.0) * static_cast<double>(i) /
                                      static_cast<double>(std::max<int64_t>(half - 1, 1)))));
    }
    const TensorRef step = b_.Reshape(b_.Input("timestep", {batch_}), {batch_, 1}, "time/column");
    const TensorRef angles = b_.Call(
        OpKind::kMul, {step, b_.Constant("time/frequencies", {1, half}, std::move(frequencies))},
        "time/angles");
    TensorRef x = b_.Concat(
        {b_.Call(OpKind::kSin, {angles}, "time/sin"), b_.Call(OpKind::kCos, {angles}, "time/cos")},
        1, "time/waves");
    x = Swish(b_.Dense(x, 4 * channels_, "time/dense0"), "time/dense0");
    return Swish(b_.Dense(x, 4 * channels_, "time/dense1"), "time");
  }

  // Two convolutions, the time added between them.
  TensorRef Residual(TensorRef x, int64_t outputs, const std::string& name) {
    const ConvolutionWindow window = ConvolutionWindow::Square(3, 1, 1);
    TensorRef y = Conv(NormSwish(x, name + "/in"), outputs, window, name + "/conv0");
    const TensorRef time = b_.Reshape(b_.Dense(time_, outputs, name + "/time"),
                                      {batch_, outputs, 1, 1}, name + "/time/pixels");
    y = NormSwish(b_.Add(y, time, name + "/timed"), name + "/out");
    y = Conv(b_.Dropout(y, dropout_, name + "/dropout"), outputs, window, name + "/conv1");
    if (b_.Size(x, 1) != outputs)
      x = Conv(x, outputs, ConvolutionWindow::Square(1), name + "/shortcut");
    return b_.Add(x, y, name);
  }

  // [batch, channels, side, side] -> [batch, 1, pixels, channels]: one head.
  TensorRef Pixels(TensorRef x, const std::string& name) {
    x = b_.Reshape(x, {batch_, 1, b_.Size(x, 1), b_.Size(x, 2) * b_.Size(x, 3)}, name + "/row");
    return b_.Transpose(x, {0, 1, 3, 2}, name + "/pixels");
  }

  TensorRef Attention(TensorRef x, const std::string& name) {
    const int64_t channels = b_.Size(x, 1);
    const TensorRef normed = Norm(x, name + "/norm");
    auto project = [&](const std::string& of) {
      return Pixels(Conv(normed, channels, ConvolutionWindow::Square(1), name + of), name + of);
    };
    const TensorRef q = project("/query"), k = project("/key"), v = project("/value");
    TensorRef y =
        b_.Call({OpKind::kAttention, {{"scale", 1 / std::sqrt(static_cast<double>(channels))}}},
                {q, k, v}, name + "/context");
    y = b_.Transpose(y, {0, 1, 3, 2}, name + "/context/channels");
    y = b_.Reshape(y, b_.Sizes(x), name + "/context/image");
    return b_.Add(x, Conv(y, channels, ConvolutionWindow::Square(1), name + "/output"), name);
  }

  TensorRef Block(TensorRef x, int64_t level, const std::string& name) {
    x = Residual(x, channels_ * kMultiples[level], name);
    return b_.Size(x, 2) == attention_side_ ? Attention(x, name + "/attention") : x;
  }

  // Every result, finest first.
  std::vector<TensorRef> Down(TensorRef image) {
    std::vector<TensorRef> results = {
        Conv(image, channels_, ConvolutionWindow::Square(3, 1, 1), "input")};
    for (int64_t level = 0; level < kLevels; ++level) {
      const std::string name = absl::StrCat("down", level);
      for (int64_t block = 0; block < arguments_.at("blocks"); ++block) {
        results.push_back(Block(results.back(), level, absl::StrCat(name, "/block", block)));
      }
      if (level == kLevels - 1) break;
      results.push_back(Conv(results.back(), b_.Size(results.back(), 1),
                             ConvolutionWindow::Same(3, 2), name + "/stride"));
    }
    return results;
  }

  // Each pixel twice along its row, then each row twice: by tensors of four dims, of which rules
  // split the batch.
  TensorRef Upsample(TensorRef x, const std::string& name) {
    const int64_t channels = b_.Size(x, 1), side = b_.Size(x, 2);
    x = b_.Reshape(x, {batch_, channels, side * side, 1}, name + "/pixels");
    x = b_.Concat({x, x}, 3, name + "/pixels/twice");
    x = b_.Reshape(x, {batch_, channels * side, 1, 2 * side}, name + "/rows");
    x = b_.Concat({x, x}, 2, name + "/rows/twice");
    return b_.Reshape(x, {batch_, channels, 2 * side, 2 * side}, name);
  }

  // Takes up the results of the way down, coarsest first.
  TensorRef Up(TensorRef x, std::vector<TensorRef> skipped) {
    for (int64_t level = kLevels - 1; level >= 0; --level) {
      const std::string name = absl::StrCat("up", level);
      for (int64_t block = 0; block <= arguments_.at("blocks"); ++block) {
        const std::string of_block = absl::StrCat(name, "/block", block);
        x = Block(b_.Concat({x, skipped.back()}, 1, of_block + "/joined"), level, of_block);
        skipped.pop_back();
      }
      if (level == 0) break;
      x = Conv(Upsample(x, name + "/upsampled"), b_.Size(x, 1), ConvolutionWindow::Square(3, 1, 1),
               name + "/upsampled");
    }
    return x;
  }

  const ZooArguments& arguments_;
  const int64_t batch_, channels_, attention_side_;
  const double dropout_;
  ModelBuilder b_;
  TensorRef time_;
};

absl::StatusOr<Model> BuildUnet(const ZooArguments& arguments) {
  return UnetNetwork(arguments).Build();
}

}  // namespace

ZooModel Unet() {
  return {
      .name = "unet",
      .description = "the U-Net of a diffusion model: the noise in an image of 32 x 32 at a step",
      .parameters = {{.name = "channels", .value = 128, .smallest = 2, .largest = 4096},
                     ZooCount("blocks", 2),
                     {.name = "groups", .value = 32, .largest = 4096},
                     {.name = "attention_side", .value = 16, .largest = 4096},
                     {.name = "side", .value = 32, .largest = 4096},
                     ZooSwitch("dropout", false),
                     {.name = "batch", .value = 128}},
      .build = BuildUnet,
      .small = "channels=4&blocks=1&groups=2&attention_side=4&side=8&batch=16",
      .source = "Ho et al., 2020, appendix B, CIFAR-10",
      .published_parameters = 35746307,
      .notes =
          "by default no dropout; the paper says 35.7 million, the count is that of its public "
          "implementations"};
}

}  // namespace isomer
