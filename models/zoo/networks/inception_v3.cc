#include <algorithm>

#include "models/zoo/blocks/convolution_blocks.h"
#include "models/zoo/models.h"

namespace isomer {
namespace {

constexpr double kEpsilonOfInceptionV3 = 0.001;
constexpr double kAuxiliaryWeight = 0.4;  // Of the auxiliary classifier's loss, as torchvision has.

// The blocks A to E are those of torchvision, numbered as the figures 5 to 10 of the paper.
class InceptionV3Network {
 public:
  explicit InceptionV3Network(const ZooArguments& arguments)
      : arguments_(arguments), training_(arguments.at("training") == 1) {}

  absl::StatusOr<Model> Build() {
    const int64_t side = arguments_.at("side"), batch = arguments_.at("batch");
    TensorRef x = Stem(b_.Input("image", {batch, 3, side, side}));
    x = BlockA(x, 32, "mixed0");
    x = BlockA(x, 64, "mixed1");
    x = BlockA(x, 64, "mixed2");
    x = BlockB(x, "mixed3");
    x = BlockC(x, 128, "mixed4");
    x = BlockC(x, 160, "mixed5");
    x = BlockC(x, 160, "mixed6");
    x = BlockC(x, 192, "mixed7");
    const TensorRef middle = x;
    x = BlockD(x, "mixed8");
    x = BlockE(x, "mixed9");
    x = BlockE(x, "mixed10");
    const TensorRef logits =
        b_.Dense(GlobalAvgPool(b_, x, "pool"), arguments_.at("classes"), "classifier");
    b_.Output("logits", logits);
    if (arguments_.at("aux") == 1) AddAuxiliaryLoss(logits, Auxiliary(middle));
    return b_.Build();
  }

 private:
  // Channels are those of the paper, divided by `thinner`.
  TensorRef Conv(TensorRef x, int64_t channels, const ConvolutionWindow& window,
                 const std::string& name) {
    channels = std::max<int64_t>(channels / arguments_.at("thinner"), 1);
    x = Convolution(b_, x, channels, window, name + "/conv");
    return b_.Relu(BatchNorm(b_, x, name + "/norm", training_, kEpsilonOfInceptionV3), name);
  }
  TensorRef PooledConv(TensorRef x, int64_t channels, const std::string& name) {
    x = AvgPool(b_, x, ConvolutionWindow::Centred(3, 3), name + "/average", PaddingCounts::kYes);
    return Conv(x, channels, ConvolutionWindow::Square(1), name);
  }
  TensorRef MaxPoolBy2(TensorRef x, const std::string& name) {
    return MaxPool(b_, x, ConvolutionWindow::Square(3, 2), name);
  }

  TensorRef Stem(TensorRef x) {
    x = Conv(x, 32, ConvolutionWindow::Square(3, 2), "stem/conv1");
    x = Conv(x, 32, ConvolutionWindow::Square(3), "stem/conv2");
    x = Conv(x, 64, ConvolutionWindow::Centred(3, 3), "stem/conv3");
    x = MaxPoolBy2(x, "stem/pool1");
    x = Conv(x, 80, ConvolutionWindow::Square(1), "stem/conv4");
    x = Conv(x, 192, ConvolutionWindow::Square(3), "stem/conv5");
    return MaxPoolBy2(x, "stem/pool2");
  }

  TensorRef BlockA(TensorRef x, int64_t pool_channels, const std::string& name) {
    const TensorRef one = Conv(x, 64, ConvolutionWindow::Square(1), name + "/1x1");
    TensorRef five = Conv(x, 48, ConvolutionWindow::Square(1), name + "/5x5/1");
    five = Conv(five, 64, ConvolutionWindow::Centred(5, 5), name + "/5x5/2");
    TensorRef twice = Conv(x, 64, ConvolutionWindow::Square(1), name + "/3x3/1");
    twice = Conv(twice, 96, ConvolutionWindow::Centred(3, 3), name + "/3x3/2");
    twice = Conv(twice, 96, ConvolutionWindow::Centred(3, 3), name + "/3x3/3");
    return b_.Concat({one, five, twice, PooledConv(x, pool_channels, name + "/pool")}, 1, name);
  }

  TensorRef BlockB(TensorRef x, const std::string& name) {
    const TensorRef three = Conv(x, 384, ConvolutionWindow::Square(3, 2), name + "/3x3");
    TensorRef twice = Conv(x, 64, ConvolutionWindow::Square(1), name + "/double/1");
    twice = Conv(twice, 96, ConvolutionWindow::Centred(3, 3), name + "/double/2");
    twice = Conv(twice, 96, ConvolutionWindow::Square(3, 2), name + "/double/3");
    return b_.Concat({three, twice, MaxPoolBy2(x, name + "/pool")}, 1, name);
  }

  TensorRef BlockC(TensorRef x, int64_t channels, const std::string& name) {
    const ConvolutionWindow row = ConvolutionWindow::Centred(1, 7),
                            column = ConvolutionWindow::Centred(7, 1);
    const TensorRef one = Conv(x, 192, ConvolutionWindow::Square(1), name + "/1x1");
    TensorRef once = Conv(x, channels, ConvolutionWindow::Square(1), name + "/7x7/1");
    once = Conv(once, channels, row, name + "/7x7/2");
    once = Conv(once, 192, column, name + "/7x7/3");
    TensorRef twice = Conv(x, channels, ConvolutionWindow::Square(1), name + "/double/1");
    twice = Conv(twice, channels, column, name + "/double/2");
    twice = Conv(twice, channels, row, name + "/double/3");
    twice = Conv(twice, channels, column, name + "/double/4");
    twice = Conv(twice, 192, row, name + "/double/5");
    return b_.Concat({one, once, twice, PooledConv(x, 192, name + "/pool")}, 1, name);
  }

  TensorRef BlockD(TensorRef x, const std::string& name) {
    TensorRef three = Conv(x, 192, ConvolutionWindow::Square(1), name + "/3x3/1");
    three = Conv(three, 320, ConvolutionWindow::Square(3, 2), name + "/3x3/2");
    TensorRef seven = Conv(x, 192, ConvolutionWindow::Square(1), name + "/7x7/1");
    seven = Conv(seven, 192, ConvolutionWindow::Centred(1, 7), name + "/7x7/2");
    seven = Conv(seven, 192, ConvolutionWindow::Centred(7, 1), name + "/7x7/3");
    seven = Conv(seven, 192, ConvolutionWindow::Square(3, 2), name + "/7x7/4");
    return b_.Concat({three, seven, MaxPoolBy2(x, name + "/pool")}, 1, name);
  }

  TensorRef BlockE(TensorRef x, const std::string& name) {
    const TensorRef one = Conv(x, 320, ConvolutionWindow::Square(1), name + "/1x1");
    const TensorRef three = Conv(x, 384, ConvolutionWindow::Square(1), name + "/3x3/1");
    TensorRef twice = Conv(x, 448, ConvolutionWindow::Square(1), name + "/double/1");
    twice = Conv(twice, 384, ConvolutionWindow::Centred(3, 3), name + "/double/2");
    return b_.Concat({one, RowAndColumn(three, name + "/3x3/2"),
                      RowAndColumn(twice, name + "/double/3"), PooledConv(x, 192, name + "/pool")},
                     1, name);
  }
  TensorRef RowAndColumn(TensorRef x, const std::string& name) {
    return b_.Concat({Conv(x, 384, ConvolutionWindow::Centred(1, 3), name + "/row"),
                      Conv(x, 384, ConvolutionWindow::Centred(3, 1), name + "/column")},
                     1, name);
  }

  TensorRef Auxiliary(TensorRef x) {
    x = AvgPool(b_, x, ConvolutionWindow::Square(5, 3), "auxiliary/average");
    x = Conv(x, 128, ConvolutionWindow::Square(1), "auxiliary/conv0");
    x = Conv(x, 768, ConvolutionWindow::Square(5), "auxiliary/conv1");
    return b_.Dense(GlobalAvgPool(b_, x, "auxiliary/pool"), arguments_.at("classes"),
                    "auxiliary/classifier");
  }

  void AddAuxiliaryLoss(TensorRef logits, TensorRef auxiliary) {
    const TensorRef labels = b_.Input("labels", {arguments_.at("batch")}, DataType::kInt64);
    const TensorRef main = b_.Call(OpKind::kCrossEntropy, {logits, labels}, "main_loss");
    const TensorRef side =
        b_.Call({OpKind::kScale, {{"factor", kAuxiliaryWeight}}},
                {b_.Call(OpKind::kCrossEntropy, {auxiliary, labels}, "auxiliary/loss")},
                "auxiliary/scaled_loss");
    b_.Loss(b_.Add(main, side, "loss"));
  }

  const ZooArguments& arguments_;
  const bool training_;
  ModelBuilder b_;
};

absl::StatusOr<Model> BuildInceptionV3(const ZooArguments& arguments) {
  return InceptionV3Network(arguments).Build();
}

}  // namespace

ZooModel InceptionV3() {
  return {.name = "inception_v3",
          .description =
              "Inception-v3: blocks of parallel convolutions; logits, and with aux=1 the "
              "loss of two classifiers",
          .parameters = {{.name = "thinner", .value = 1, .largest = 64},
                         {.name = "side", .value = 299, .smallest = 75, .largest = 4096},
                         {.name = "classes", .value = 1000},
                         ZooSwitch("aux", false),
                         ZooSwitch("training", true),
                         {.name = "batch", .value = 256}},
          .build = BuildInceptionV3,
          .small = "thinner=64&side=75&classes=16&batch=16&training=0",
          .source = "Szegedy et al., 2016, table 1; Unity, table 1; FlexFlow, table 4",
          .published_parameters = 27161264,
          .published_for = "aux=1",
          .notes =
              "without the auxiliary classifier by default, as in Unity's and FlexFlow's code "
              "(then 23,834,568 by torchvision); no dropout"};
}

}  // namespace isomer
