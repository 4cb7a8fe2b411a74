#include "absl/status/status.h"
#include "models/zoo/model_builder.h"
#include "models/zoo/zoo.h"

namespace isomer {
namespace {

// A 3x3 convolution that keeps the size of the image, a bias per channel, Relu.
TensorRef Convolution(ModelBuilder& b, TensorRef x, int64_t inputs, int64_t outputs,
                      const std::string& name) {
  const TensorRef weight = b.Weight(name + ".weight", {outputs, inputs, 3, 3});
  const TensorRef product = b.Call({OpKind::kConv2d,
                                    {{"stride", std::vector<int64_t>{1, 1}},
                                     {"padding", std::vector<int64_t>{1, 1, 1, 1}},
                                     {"dilation", std::vector<int64_t>{1, 1}}}},
                                   {x, weight}, name + "/product");
  const TensorRef bias =
      b.Reshape(b.Weight(name + ".bias", {outputs}), {1, outputs, 1, 1}, name + "/bias");
  return b.Call(OpKind::kRelu, {b.Call(OpKind::kAdd, {product, bias}, name)}, name + "/relu");
}

}  // namespace

// The network of models/export/networks.py, DigitsCnn.
absl::StatusOr<Model> BuildDigitsCnn(const ZooArguments& arguments) {
  const int64_t batch = arguments.at("batch"), side = arguments.at("side");
  const int64_t channels = arguments.at("channels"), hidden = arguments.at("hidden");
  ModelBuilder b;
  if (side < 2) b.Fail(absl::InvalidArgumentError("side is below 2, too small to pool"));
  TensorRef x = b.Input("image", {batch, 1, side, side});
  x = Convolution(b, x, 1, channels, "conv1");
  x = Convolution(b, x, channels, 2 * channels, "conv2");
  x = b.Call({OpKind::kMaxPool,
              {{"kernel", std::vector<int64_t>{2, 2}},
               {"stride", std::vector<int64_t>{2, 2}},
               {"padding", std::vector<int64_t>{0, 0, 0, 0}}}},
             {x}, "pool");
  const int64_t flat = 2 * channels * (side / 2) * (side / 2);
  x = b.Reshape(x, {batch, flat}, "flatten");
  x = b.Call(OpKind::kRelu, {b.Linear(x, flat, hidden, "dense1")}, "dense1/relu");
  b.Output("logits", b.Linear(x, hidden, arguments.at("classes"), "dense2"));
  return b.Build();
}

}  // namespace isomer
