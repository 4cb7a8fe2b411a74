#include "models/zoo/blocks/convolution_blocks.h"
#include "models/zoo/models.h"

namespace isomer {
namespace {

absl::StatusOr<Model> BuildLenet(const ZooArguments& arguments) {
  ModelBuilder b;
  const int64_t side = arguments.at("side");
  TensorRef x = b.Input("image", {arguments.at("batch"), 1, side, side});
  x = ConvolutionBiasRelu(b, x, 6, ConvolutionWindow::Square(5), "conv1");
  x = MaxPool(b, x, ConvolutionWindow::Square(2, 2), "pool1");
  x = ConvolutionBiasRelu(b, x, 16, ConvolutionWindow::Square(5), "conv2");
  x = b.Flatten(MaxPool(b, x, ConvolutionWindow::Square(2, 2), "pool2"), "flatten");
  x = b.Relu(b.Dense(x, 120, "dense1"), "dense1");
  x = b.Relu(b.Dense(x, 84, "dense2"), "dense2");
  b.Output("logits", b.Dense(x, arguments.at("classes"), "dense3"));
  return b.Build();
}

}  // namespace

ZooModel LeNet() {
  return {.name = "lenet",
          .description = "LeNet-5: two convolutions and three dense layers; logits",
          .parameters = {{.name = "side", .value = 32, .smallest = 16, .largest = 4096},
                         {.name = "classes", .value = 10},
                         {.name = "batch", .value = 256}},
          .build = BuildLenet,
          .small = "side=16&classes=16&batch=16",
          .source = "LeCun et al., 1998, figure 2; FlexFlow, section 8.4",
          .published_parameters = 61706,
          .notes =
              "Relu and maximum pooling for tanh and trained averages; the count is that of "
              "fully connected maps"};
}

}  // namespace isomer
