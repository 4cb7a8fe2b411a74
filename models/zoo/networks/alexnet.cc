#include "models/zoo/blocks/convolution_blocks.h"
#include "models/zoo/models.h"

namespace isomer {
namespace {

absl::StatusOr<Model> BuildAlexnet(const ZooArguments& arguments) {
  ModelBuilder b;
  const int64_t width = arguments.at("width"), hidden = arguments.at("hidden");
  const double rate = arguments.at("dropout") == 1 ? 0.5 : 0;
  TensorRef x =
      b.Input("image", {arguments.at("batch"), 3, arguments.at("side"), arguments.at("side")});
  const ConvolutionWindow pool = ConvolutionWindow::Square(3, 2);
  x = ConvolutionBiasRelu(b, x, width, ConvolutionWindow::Square(11, 4, 2), "conv1");
  x = MaxPool(b, x, pool, "pool1");
  x = ConvolutionBiasRelu(b, x, 3 * width, ConvolutionWindow::Centred(5, 5), "conv2");
  x = MaxPool(b, x, pool, "pool2");
  x = ConvolutionBiasRelu(b, x, 6 * width, ConvolutionWindow::Centred(3, 3), "conv3");
  x = ConvolutionBiasRelu(b, x, 4 * width, ConvolutionWindow::Centred(3, 3), "conv4");
  x = ConvolutionBiasRelu(b, x, 4 * width, ConvolutionWindow::Centred(3, 3), "conv5");
  x = b.Flatten(MaxPool(b, x, pool, "pool5"), "flatten");
  x = b.Relu(b.Dense(b.Dropout(x, rate, "dropout6"), hidden, "dense6"), "dense6");
  x = b.Relu(b.Dense(b.Dropout(x, rate, "dropout7"), hidden, "dense7"), "dense7");
  b.Output("logits", b.Dense(x, arguments.at("classes"), "dense8"));
  return b.Build();
}

}  // namespace

ZooModel AlexNet() {
  return {.name = "alexnet",
          .description = "AlexNet: five convolutions and three dense layers; logits",
          .parameters = {{.name = "width", .value = 64, .largest = 4096},
                         {.name = "hidden", .value = 4096},
                         {.name = "side", .value = 224, .smallest = 63, .largest = 4096},
                         {.name = "classes", .value = 1000},
                         ZooSwitch("dropout", false),
                         {.name = "batch", .value = 1024}},
          .build = BuildAlexnet,
          .small = "width=2&hidden=16&side=63&classes=16&batch=16",
          .source = "Krizhevsky, 2014 (one weird trick), section 5; FlexFlow, table 4",
          .published_parameters = 61100840,
          .notes = "one tower without response normalisation, as torchvision has it"};
}

}  // namespace isomer
