// Blocks of convolutional networks. Images are [batch, channels, height, width].
#ifndef ISOMER_MODELS_ZOO_BLOCKS_CONVOLUTION_BLOCKS_H_
#define ISOMER_MODELS_ZOO_BLOCKS_CONVOLUTION_BLOCKS_H_

#include <array>
#include <cstdint>
#include <string>

#include "models/zoo/blocks/model_builder.h"

namespace isomer {

// A kernel and how it moves over an image.
struct ConvolutionWindow {
  std::array<int64_t, 2> kernel;
  int64_t stride = 1;
  // Zeros before and after each dim.
  std::array<int64_t, 2> padding = {0, 0};
  // What overrules `padding`: kSame pads to ceil(size / stride) outputs, the odd zero after (as
  // TensorFlow does); kCeil adds to `padding` after the image so that no pixel is left over (the
  // ceil_mode of PyTorch's pooling).
  enum class Rounding { kFloor, kCeil, kSame };
  Rounding rounding = Rounding::kFloor;

  // A square kernel; with an odd one, `Square(k, 1, k / 2)` keeps the size of the image.
  static ConvolutionWindow Square(int64_t size, int64_t stride = 1, int64_t padding = 0) {
    return {.kernel = {size, size}, .stride = stride, .padding = {padding, padding}};
  }
  // The kernel keeps the size of the image, but for the stride. REQUIRES: odd sizes.
  static ConvolutionWindow Centred(int64_t height, int64_t width, int64_t stride = 1) {
    return {.kernel = {height, width}, .stride = stride, .padding = {height / 2, width / 2}};
  }
  static ConvolutionWindow Same(int64_t size, int64_t stride = 1) {
    return {.kernel = {size, size}, .stride = stride, .rounding = Rounding::kSame};
  }
  static ConvolutionWindow Ceil(int64_t size, int64_t stride) {
    return {.kernel = {size, size}, .stride = stride, .rounding = Rounding::kCeil};
  }
};

// Without a bias.
TensorRef Convolution(ModelBuilder& b, TensorRef x, int64_t outputs,
                      const ConvolutionWindow& window, const std::string& name, int64_t groups = 1);
// With a bias per channel, and Relu.
TensorRef ConvolutionBiasRelu(ModelBuilder& b, TensorRef x, int64_t outputs,
                              const ConvolutionWindow& window, const std::string& name);

// Batch normalisation with weights gamma and beta. In inference one batch_norm with the constants
// `running_mean` and `running_variance`. In training the mean and the (biased) variance of the
// batch are computed by primitives, each of which can be partitioned along the batch: this is the
// synchronised form, equal for every number of devices.
TensorRef BatchNorm(ModelBuilder& b, TensorRef x, const std::string& name, bool training,
                    double epsilon = 1e-5);

// A bias per channel: a weight [channels] that is added to every pixel.
TensorRef ChannelBias(ModelBuilder& b, TensorRef x, const std::string& name);

TensorRef MaxPool(ModelBuilder& b, TensorRef x, const ConvolutionWindow& window,
                  const std::string& name);
enum class PaddingCounts { kNo, kYes };
TensorRef AvgPool(ModelBuilder& b, TensorRef x, const ConvolutionWindow& window,
                  const std::string& name, PaddingCounts padding_counts = PaddingCounts::kNo);
// [batch, channels]
TensorRef GlobalAvgPool(ModelBuilder& b, TensorRef x, const std::string& name);

}  // namespace isomer

#endif  // ISOMER_MODELS_ZOO_BLOCKS_CONVOLUTION_BLOCKS_H_
