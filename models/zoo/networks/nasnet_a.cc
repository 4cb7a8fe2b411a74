#include "absl/strings/str_cat.h"
#include "models/zoo/blocks/convolution_blocks.h"
#include "models/zoo/models.h"

namespace isomer {
namespace {

// The network of TASO and TENSAT: the cells of NASNet-A without BatchNorm, five normal ones and a
// reduction in each of three stages, no classifier.
class NasnetANetwork {
 public:
  explicit NasnetANetwork(const ZooArguments& arguments) : arguments_(arguments) {}

  absl::StatusOr<Model> Build() {
    const int64_t side = arguments_.at("side");
    TensorRef x = b_.Input("image", {arguments_.at("batch"), 3, side, side});
    x = b_.Relu(
        Convolution(b_, x, arguments_.at("width") / 2, ConvolutionWindow::Same(7, 2), "stem"),
        "stem");
    x = MaxPool(b_, x, ConvolutionWindow::Same(3, 2), "stem/pool");
    channels_ = arguments_.at("width");
    for (int64_t stage = 0; stage < arguments_.at("stages"); ++stage) {
      TensorRef previous = x, current = x;
      for (int64_t cell = 0; cell < arguments_.at("cells"); ++cell) {
        name_ = absl::StrCat("stage", stage, "/cell", cell);
        const TensorRef next = NormalCell(previous, current);
        previous = current;
        current = next;
      }
      channels_ *= 2;
      name_ = absl::StrCat("stage", stage, "/reduction");
      x = ReductionCell(previous, current);
    }
    b_.Output("features", x);
    return b_.Build();
  }

 private:
  TensorRef Squeeze(TensorRef x, const std::string& part) {
    const std::string name = absl::StrCat(name_, part);
    return b_.Relu(Convolution(b_, x, channels_, ConvolutionWindow::Square(1), name), name);
  }
  // `previous` with the channels and the size of `current`.
  TensorRef Fit(TensorRef previous, TensorRef current) {
    if (b_.Size(previous, 2) == b_.Size(current, 2)) return Squeeze(previous, "/previous");
    const std::string name = name_ + "/previous";
    return b_.Relu(Convolution(b_, previous, channels_, ConvolutionWindow::Same(3, 2), name), name);
  }
  TensorRef Separable(TensorRef x, int64_t kernel, int64_t stride, const std::string& part) {
    const std::string name = absl::StrCat(name_, "/", part);
    x = Convolution(b_, x, channels_, ConvolutionWindow::Same(kernel, stride), name + "/depthwise",
                    b_.Size(x, 1));
    return Convolution(b_, x, channels_, ConvolutionWindow::Square(1), name + "/pointwise");
  }
  TensorRef Average(TensorRef x, int64_t stride, const std::string& part) {
    return AvgPool(b_, x, ConvolutionWindow::Same(3, stride), absl::StrCat(name_, "/", part));
  }
  TensorRef Maximum(TensorRef x, const std::string& part) {
    return MaxPool(b_, x, ConvolutionWindow::Same(3, 2), absl::StrCat(name_, "/", part));
  }
  TensorRef Sum(TensorRef a, TensorRef b, const std::string& part) {
    return b_.Add(a, b, absl::StrCat(name_, "/", part));
  }

  TensorRef NormalCell(TensorRef previous, TensorRef current) {
    const TensorRef c = Squeeze(current, "/current"), p = Fit(previous, c);
    return b_.Concat(
        {Sum(Separable(c, 3, 1, "separable0"), c, "sum0"),
         Sum(Separable(p, 3, 1, "separable1"), Separable(c, 3, 1, "separable2"), "sum1"),
         Sum(Average(c, 1, "average2"), p, "sum2"),
         Sum(Average(p, 1, "average3a"), Average(p, 1, "average3b"), "sum3"),
         Sum(Separable(p, 3, 1, "separable4a"), Separable(p, 3, 1, "separable4b"), "sum4")},
        1, name_);
  }

  TensorRef ReductionCell(TensorRef previous, TensorRef current) {
    const TensorRef c = Squeeze(current, "/current"), p = Fit(previous, c);
    const TensorRef sum0 =
        Sum(Separable(p, 7, 2, "separable0a"), Separable(c, 5, 2, "separable0b"), "sum0");
    const TensorRef sum1 = Sum(Maximum(c, "maximum1"), Separable(p, 7, 2, "separable1"), "sum1");
    const TensorRef sum2 = Sum(Average(c, 2, "average2"), Separable(p, 5, 2, "separable2"), "sum2");
    const TensorRef sum3 = Sum(Maximum(c, "maximum3"), Separable(sum0, 3, 1, "separable3"), "sum3");
    const TensorRef sum4 = Sum(Average(sum0, 1, "average4"), sum1, "sum4");
    return b_.Concat({sum0, sum1, sum2, sum3, sum4}, 1, name_);
  }

  const ZooArguments& arguments_;
  ModelBuilder b_;
  int64_t channels_ = 0;
  std::string name_;  // of the cell
};

absl::StatusOr<Model> BuildNasnetA(const ZooArguments& arguments) {
  return NasnetANetwork(arguments).Build();
}

}  // namespace

ZooModel NasnetA() {
  return {.name = "nasnet_a",
          .description =
              "NASNet-A cells: separable convolutions in a graph that is not "
              "series-parallel; features",
          .parameters = {{.name = "stages", .value = 3, .largest = 6},
                         ZooCount("cells", 5),
                         {.name = "width", .value = 128, .smallest = 2, .largest = 4096},
                         {.name = "side", .value = 224, .largest = 4096},
                         {.name = "batch", .value = 1}},
          .build = BuildNasnetA,
          .small = "stages=1&cells=1&width=4&side=12&batch=16",
          .source = "Zoph et al., 2018, figure 4; TENSAT, section 6; TASO's examples/nasnet_a.py",
          .notes =
              "no BatchNorm and no classifier, and wider cells than the ImageNet network, as "
              "in TASO's and TENSAT's code"};
}

}  // namespace isomer
