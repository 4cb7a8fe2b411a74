#include "models/zoo/networks/residual_network.h"

#include "absl/strings/str_cat.h"
#include "models/zoo/blocks/convolution_blocks.h"

namespace isomer {
namespace {

class ResidualNetwork {
 public:
  explicit ResidualNetwork(const ZooArguments& arguments)
      : arguments_(arguments),
        groups_(arguments.at("groups")),
        training_(arguments.at("training") == 1) {}

  absl::StatusOr<Model> Build() {
    const int64_t side = arguments_.at("side"), stem = arguments_.at("stem");
    TensorRef x = b_.Input("image", {arguments_.at("batch"), 3, side, side});
    x = b_.Relu(ConvolutionNorm(x, stem, ConvolutionWindow::Square(7, 2, 3), 1, "stem"), "stem");
    x = MaxPool(b_, x, ConvolutionWindow::Square(3, 2, 1), "stem/pool");
    for (int64_t stage = 0; stage < 4; ++stage) {
      const int64_t planes = stem << stage,
                    blocks = arguments_.at(absl::StrCat("blocks", stage + 1));
      for (int64_t block = 0; block < blocks; ++block) {
        const int64_t stride = stage > 0 && block == 0 ? 2 : 1;
        x = Block(x, planes, stride, absl::StrCat("stage", stage + 1, "/block", block));
      }
    }
    b_.Output("logits",
              b_.Dense(GlobalAvgPool(b_, x, "pool"), arguments_.at("classes"), "classifier"));
    return b_.Build();
  }

 private:
  TensorRef ConvolutionNorm(TensorRef x, int64_t outputs, const ConvolutionWindow& window,
                            int64_t groups, const std::string& name) {
    x = Convolution(b_, x, outputs, window, name + "/conv", groups);
    return BatchNorm(b_, x, name + "/norm", training_);
  }

  TensorRef Block(TensorRef x, int64_t planes, int64_t stride, const std::string& name) {
    const int64_t width = planes * arguments_.at("group_width") * groups_ / 64;
    const int64_t outputs = planes * 4;
    if (width < groups_ || width % groups_ != 0) {
      b_.Fail(absl::InvalidArgumentError(
          absl::StrCat(width, " channels do not divide into groups=", groups_)));
    }
    const bool changes_shape = stride != 1 || b_.Size(x, 1) != outputs;
    const TensorRef shortcut =
        changes_shape ? ConvolutionNorm(x, outputs, ConvolutionWindow::Square(1, stride), 1,
                                        name + "/shortcut")
                      : x;
    TensorRef y = x;
    y = b_.Relu(ConvolutionNorm(y, width, ConvolutionWindow::Square(1), 1, name + "/reduce"),
                name + "/reduce");
    y = b_.Relu(ConvolutionNorm(y, width, ConvolutionWindow::Square(3, stride, 1), groups_,
                                name + "/group"),
                name + "/group");
    y = ConvolutionNorm(y, outputs, ConvolutionWindow::Square(1), 1, name + "/expand");
    return b_.Relu(b_.Add(y, shortcut, name + "/sum"), name);
  }

  const ZooArguments& arguments_;
  const int64_t groups_;
  const bool training_;
  ModelBuilder b_;
};

}  // namespace

std::vector<ZooParameter> ResidualNetworkParameters(const std::array<int64_t, 4>& blocks,
                                                    int64_t groups, int64_t group_width) {
  return {ZooCount("blocks1", blocks[0]),
          ZooCount("blocks2", blocks[1]),
          ZooCount("blocks3", blocks[2]),
          ZooCount("blocks4", blocks[3]),
          {.name = "groups", .value = groups, .largest = 4096},
          {.name = "group_width", .value = group_width, .largest = 4096},
          {.name = "stem", .value = 64, .largest = 4096},
          {.name = "side", .value = 224, .largest = 4096},
          {.name = "classes", .value = 1000},
          ZooSwitch("training", true),
          {.name = "batch", .value = 256}};
}

absl::StatusOr<Model> BuildResidualNetwork(const ZooArguments& arguments) {
  return ResidualNetwork(arguments).Build();
}

}  // namespace isomer
