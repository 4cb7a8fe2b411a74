#include "absl/strings/str_cat.h"
#include "models/zoo/blocks/convolution_blocks.h"
#include "models/zoo/models.h"

namespace isomer {
namespace {

// A 1x1 convolution to few channels, then 1x1 and 3x3 convolutions side by side.
TensorRef Fire(ModelBuilder& b, TensorRef x, int64_t squeeze, int64_t expand,
               const std::string& name) {
  x = ConvolutionBiasRelu(b, x, squeeze, ConvolutionWindow::Square(1), name + "/squeeze");
  return b.Concat(
      {ConvolutionBiasRelu(b, x, expand, ConvolutionWindow::Square(1), name + "/expand1x1"),
       ConvolutionBiasRelu(b, x, expand, ConvolutionWindow::Centred(3, 3), name + "/expand3x3")},
      1, name);
}

absl::StatusOr<Model> BuildSqueezenet(const ZooArguments& arguments) {
  ModelBuilder b;
  const int64_t width = arguments.at("width");
  const double rate = arguments.at("dropout") == 1 ? 0.5 : 0;
  TensorRef x =
      b.Input("image", {arguments.at("batch"), 3, arguments.at("side"), arguments.at("side")});
  x = ConvolutionBiasRelu(b, x, 6 * width, ConvolutionWindow::Square(7, 2), "conv1");
  x = MaxPool(b, x, ConvolutionWindow::Ceil(3, 2), "pool1");
  const int64_t squeezes[] = {1, 1, 2, 2, 3, 3, 4, 4};  // In units of `width`.
  for (int i = 0; i < 8; ++i) {
    const std::string number = absl::StrCat(i + 2);
    x = Fire(b, x, squeezes[i] * width, 4 * squeezes[i] * width, "fire" + number);
    if (i == 2 || i == 6) x = MaxPool(b, x, ConvolutionWindow::Ceil(3, 2), "pool" + number);
  }
  x = b.Dropout(x, rate, "dropout9");
  x = ConvolutionBiasRelu(b, x, arguments.at("classes"), ConvolutionWindow::Square(1), "conv10");
  b.Output("logits", GlobalAvgPool(b, x, "logits"));
  return b.Build();
}

}  // namespace

ZooModel SqueezeNet() {
  return {.name = "squeezenet",
          .description = "SqueezeNet 1.0: eight fire modules; logits",
          .parameters = {{.name = "width", .value = 16, .largest = 4096},
                         {.name = "side", .value = 224, .smallest = 29, .largest = 4096},
                         {.name = "classes", .value = 1000},
                         ZooSwitch("dropout", false),
                         {.name = "batch", .value = 1}},
          .build = BuildSqueezenet,
          .small = "width=2&side=29&classes=16&batch=16",
          .source = "Iandola et al., 2016, table 1; TENSAT, section 6",
          .published_parameters = 1248424};
}

}  // namespace isomer
