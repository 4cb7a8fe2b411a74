#include "absl/status/status.h"
#include "models/zoo/blocks/convolution_blocks.h"
#include "models/zoo/models.h"

namespace isomer {
namespace {

// The network of models/export/networks.py, DigitsCnn.
absl::StatusOr<Model> BuildDigitsCnn(const ZooArguments& arguments) {
  const int64_t batch = arguments.at("batch"), side = arguments.at("side");
  const int64_t channels = arguments.at("channels");
  ModelBuilder b;
  if (side < 2) b.Fail(absl::InvalidArgumentError("side is below 2, too small to pool"));
  TensorRef x = b.Input("image", {batch, 1, side, side});
  x = ConvolutionBiasRelu(b, x, channels, ConvolutionWindow::Centred(3, 3), "conv1");
  x = ConvolutionBiasRelu(b, x, 2 * channels, ConvolutionWindow::Centred(3, 3), "conv2");
  x = b.Flatten(MaxPool(b, x, ConvolutionWindow::Square(2, 2), "pool"), "flatten");
  x = b.Relu(b.Dense(x, arguments.at("hidden"), "dense1"), "dense1");
  b.Output("logits", b.Dense(x, arguments.at("classes"), "dense2"));
  return b.Build();
}

}  // namespace

ZooModel DigitsCnn() {
  return {.name = "digits_cnn",
          .description =
              "two convolutions and two dense layers on images of side x side pixels; logits",
          .parameters = {{.name = "side", .value = 8},
                         {.name = "channels", .value = 16},
                         {.name = "hidden", .value = 64},
                         {.name = "classes", .value = 10},
                         {.name = "batch", .value = 64}},
          .build = BuildDigitsCnn,
          .small = "side=4&channels=4&hidden=16&classes=16&batch=16",
          .source = "models/export/networks.py"};
}

}  // namespace isomer
