#include <cmath>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "models/zoo/blocks/convolution_blocks.h"
#include "models/zoo/blocks/transformer_blocks.h"
#include "models/zoo/models.h"

namespace isomer {
namespace {

// Below every score, and in the range of bfloat16.
constexpr float kUnseenOfSwin = -1e30F;

// Attention in the windows of an image [batch, side, side, channels], which may be moved by half a
// window. Windows stand beside heads: [batch, windows * heads, window^2, head_size], so that all
// are one attention and what is added to scores has no batch.
class WindowAttention {
 public:
  WindowAttention(ModelBuilder& b, int64_t side, int64_t window, int64_t heads)
      : b_(b), side_(side), window_(window), heads_(heads), across_(side / window) {
    if (side % window != 0) {
      b_.Fail(absl::InvalidArgumentError(
          absl::StrCat("a side of ", side, " does not divide into window=", window)));
    }
  }

  TensorRef Layer(TensorRef x, int64_t shift, const std::string& name) {
    const int64_t channels = b_.Size(x, -1), size = channels / heads_;
    if (shift > 0) x = Rolled(x, shift, name + "/moved");
    const TensorRef q = Windows(b_.Dense(x, channels, name + "/query"), name + "/query");
    const TensorRef k = Windows(b_.Dense(x, channels, name + "/key"), name + "/key");
    const TensorRef v = Windows(b_.Dense(x, channels, name + "/value"), name + "/value");
    const double scale = 1 / std::sqrt(static_cast<double>(size));
    TensorRef y = b_.Call({OpKind::kAttention, {{"scale", scale}, {"causal", int64_t{0}}}},
                          {q, k, v, Added(shift, name)}, name + "/context");
    y = Image(y, channels, name);
    y = b_.Dense(y, channels, name + "/output");
    return shift > 0 ? Rolled(y, side_ - shift, name + "/moved_back") : y;
  }

 private:
  TensorRef Windows(TensorRef x, const std::string& name) {
    const int64_t batch = b_.Size(x, 0), size = b_.Size(x, -1) / heads_;
    x = b_.Reshape(x, {batch, across_, window_, across_, window_, heads_, size}, name + "/split");
    x = b_.Transpose(x, {0, 1, 3, 5, 2, 4, 6}, name + "/apart");
    return b_.Reshape(x, {batch, across_ * across_ * heads_, window_ * window_, size},
                      name + "/windows");
  }
  TensorRef Image(TensorRef x, int64_t channels, const std::string& name) {
    const int64_t batch = b_.Size(x, 0), size = b_.Size(x, -1);
    x = b_.Reshape(x, {batch, across_, across_, heads_, window_, window_, size}, name + "/apart");
    x = b_.Transpose(x, {0, 1, 4, 2, 5, 3, 6}, name + "/together");
    return b_.Reshape(x, {batch, side_, side_, channels}, name + "/image");
  }

  // The image from `shift` on, with what is before behind it, along both sides.
  TensorRef Rolled(TensorRef x, int64_t shift, const std::string& name) {
    for (int64_t axis : {1, 2}) {
      const std::vector<Extent> sizes = {Extent(shift), Extent(side_ - shift)};
      const std::string along = absl::StrCat(name, axis);
      const std::vector<TensorRef> parts = b_.CallAll(
          {OpKind::kSplit, {{"axis", axis}, {"sizes", sizes}}}, {x}, 2, along + "/parts");
      x = b_.Concat({parts[1], parts[0]}, axis, along);
    }
    return x;
  }

  // A weight for each distance of pixels and head; and of moved windows, that what comes from
  // another side of the image is not seen.
  TensorRef Added(int64_t shift, const std::string& name) {
    const int64_t pixels = window_ * window_, distances = (2 * window_ - 1) * (2 * window_ - 1),
                  windows = across_ * across_;
    std::vector<float> distance;
    for (int64_t q = 0; q < pixels; ++q) {
      for (int64_t k = 0; k < pixels; ++k) {
        const int64_t down = q / window_ - k / window_ + window_ - 1,
                      right = q % window_ - k % window_ + window_ - 1;
        distance.push_back(static_cast<float>(down * (2 * window_ - 1) + right));
      }
    }
    const TensorRef ids =
        b_.Constant(name + "/distances", {pixels, pixels}, std::move(distance), DataType::kInt64);
    TensorRef bias = b_.Call(OpKind::kEmbedding,
                             {b_.Weight(name + "/distance.weight", {distances, heads_}), ids},
                             name + "/distance");
    bias = b_.Transpose(bias, {2, 0, 1}, name + "/distance/heads");
    bias = b_.Reshape(bias, {1, heads_, pixels, pixels}, name + "/distance/one");
    if (shift > 0) {
      bias = b_.Add(bias, b_.Constant(name + "/seen", {windows, 1, pixels, pixels}, Seen(shift)),
                    name + "/added");
    } else {
      bias = b_.Call(
          {OpKind::kExpand, {{"shape", std::vector<int64_t>{windows, heads_, pixels, pixels}}}},
          {bias}, name + "/added");
    }
    return b_.Reshape(bias, {1, windows * heads_, pixels, pixels}, name + "/added/rows");
  }

  // Of the moved image, which of the parts before and behind `shift` a pixel is from.
  int64_t PartOf(int64_t window, int64_t pixel, int64_t shift) const {
    const auto part = [&](int64_t at) { return at >= side_ - shift ? 1 : 0; };
    const int64_t down = window / across_ * window_ + pixel / window_,
                  right = window % across_ * window_ + pixel % window_;
    return 2 * part(down) + part(right);
  }
  std::vector<float> Seen(int64_t shift) const {
    std::vector<float> seen;
    const int64_t pixels = window_ * window_;
    for (int64_t w = 0; w < across_ * across_; ++w) {
      for (int64_t q = 0; q < pixels; ++q) {
        for (int64_t k = 0; k < pixels; ++k) {
          seen.push_back(PartOf(w, q, shift) == PartOf(w, k, shift) ? 0 : kUnseenOfSwin);
        }
      }
    }
    return seen;
  }

  ModelBuilder& b_;
  const int64_t side_, window_, heads_, across_;
};

// Four neighbours become one pixel of twice the channels.
TensorRef Merged(ModelBuilder& b, TensorRef x, const std::string& name) {
  const int64_t batch = b.Size(x, 0), side = b.Size(x, 1) / 2, channels = b.Size(x, -1);
  x = b.Reshape(x, {batch, side, 2, side, 2, channels}, name + "/fours");
  x = b.Transpose(x, {0, 1, 3, 4, 2, 5}, name + "/together");
  x = b.Reshape(x, {batch, side, side, 4 * channels}, name + "/merged");
  return b.Product(LayerNorm(b, x, name + "/norm"), 2 * channels, name);
}

absl::StatusOr<Model> BuildSwin(const ZooArguments& arguments) {
  ModelBuilder b;
  const int64_t side = arguments.at("side"), patch = arguments.at("patch"),
                width = arguments.at("width"), window = arguments.at("window");
  TensorRef x = b.Input("image", {arguments.at("batch"), 3, side, side});
  x = ChannelBias(b, Convolution(b, x, width, ConvolutionWindow::Square(patch, patch), "patches"),
                  "patches");
  x = LayerNorm(b, b.Transpose(x, {0, 2, 3, 1}, "patches/channels_last"), "patches/norm");
  for (int64_t stage = 0; stage < arguments.at("stages"); ++stage) {
    const std::string name = absl::StrCat("stage", stage + 1);
    if (stage > 0) x = Merged(b, x, name + "/smaller");
    const int64_t across = b.Size(x, 1), seen = std::min(window, across);
    WindowAttention attention(b, across, seen, arguments.at("heads") << stage);
    const int64_t layers = arguments.at(absl::StrCat("layers", stage + 1));
    for (int64_t layer = 0; layer < layers && b.ok(); ++layer) {
      const std::string at = absl::StrCat(name, "/layer", layer);
      // Every other layer looks across the borders of windows, if there is more than one.
      const int64_t shift = layer % 2 == 1 && seen < across ? window / 2 : 0;
      TensorRef y = LayerNorm(b, x, at + "/attention/norm");
      x = b.Add(x, attention.Layer(y, shift, at + "/attention"), at + "/attention/residual");
      y = LayerNorm(b, x, at + "/feed_forward/norm");
      y = FeedForward(b, y, 4 * b.Size(y, -1), OpKind::kGelu, at + "/feed_forward");
      x = b.Add(x, y, at + "/feed_forward/residual");
    }
  }
  x = LayerNorm(b, x, "norm");
  x = b.Call(
      {OpKind::kReduceMean, {{"axes", std::vector<int64_t>{1, 2}}, {"keepdims", int64_t{0}}}}, {x},
      "pool");
  b.Output("logits", b.Dense(x, arguments.at("classes"), "classifier"));
  return b.Build();
}

}  // namespace

ZooModel Swin() {
  return {
      .name = "swin",
      .description = "Swin Transformer, by default Swin-T; logits of 1000 classes",
      .parameters = {{.name = "stages", .value = 4, .largest = 4},
                     ZooCount("layers1", 2),
                     ZooCount("layers2", 2),
                     ZooCount("layers3", 6),
                     ZooCount("layers4", 2),
                     {.name = "width", .value = 96, .largest = 65536},
                     {.name = "heads", .value = 3, .largest = 4096},
                     {.name = "window", .value = 7, .largest = 64},
                     {.name = "patch", .value = 4, .largest = 4096},
                     {.name = "side", .value = 224, .largest = 4096},
                     {.name = "classes", .value = 1000},
                     {.name = "batch", .value = 256}},
      .build = BuildSwin,
      .small = "stages=2&layers1=2&layers2=1&width=16&heads=2&window=2&side=32&classes=16&batch=16",
      .source = "Liu et al., 2021 (Swin Transformer), section 3.3",
      .published_parameters = 28288354,
      .notes = "no stochastic depth"};
}

}  // namespace isomer
