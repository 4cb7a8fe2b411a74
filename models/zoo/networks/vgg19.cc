#include "absl/strings/str_cat.h"
#include "models/zoo/blocks/convolution_blocks.h"
#include "models/zoo/models.h"

namespace isomer {
namespace {

absl::StatusOr<Model> BuildVgg19(const ZooArguments& arguments) {
  ModelBuilder b;
  const int64_t width = arguments.at("width"), hidden = arguments.at("hidden");
  const double rate = arguments.at("dropout") == 1 ? 0.5 : 0;
  TensorRef x =
      b.Input("image", {arguments.at("batch"), 3, arguments.at("side"), arguments.at("side")});
  const struct {
    int64_t convolutions, channels;
  } stages[] = {{2, width}, {2, 2 * width}, {4, 4 * width}, {4, 8 * width}, {4, 8 * width}};
  int64_t number = 0;
  for (const auto& stage : stages) {
    for (int64_t i = 0; i < stage.convolutions; ++i) {
      x = ConvolutionBiasRelu(b, x, stage.channels, ConvolutionWindow::Centred(3, 3),
                              absl::StrCat("conv", ++number));
    }
    x = MaxPool(b, x, ConvolutionWindow::Square(2, 2), absl::StrCat("pool", number));
  }
  x = b.Flatten(x, "flatten");
  x = b.Relu(b.Dense(x, hidden, "dense17"), "dense17");
  x = b.Dropout(x, rate, "dropout17");
  x = b.Relu(b.Dense(x, hidden, "dense18"), "dense18");
  x = b.Dropout(x, rate, "dropout18");
  b.Output("logits", b.Dense(x, arguments.at("classes"), "dense19"));
  return b.Build();
}

}  // namespace

ZooModel Vgg19() {
  return {.name = "vgg19",
          .description = "VGG-19: sixteen 3x3 convolutions and three dense layers; logits",
          .parameters = {{.name = "width", .value = 64, .largest = 4096},
                         {.name = "hidden", .value = 4096},
                         {.name = "side", .value = 224, .smallest = 32, .largest = 4096},
                         {.name = "classes", .value = 1000},
                         ZooSwitch("dropout", false),
                         {.name = "batch", .value = 1}},
          .build = BuildVgg19,
          .small = "width=1&hidden=16&side=32&classes=16&batch=16",
          .source = "Simonyan and Zisserman, 2015, table 1, E; TENSAT, section 6",
          .published_parameters = 143667240};
}

}  // namespace isomer
