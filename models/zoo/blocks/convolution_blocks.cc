#include "models/zoo/blocks/convolution_blocks.h"

#include <algorithm>
#include <vector>

namespace isomer {
namespace {

// [top, left, bottom, right].
std::vector<int64_t> PaddingOf(const ModelBuilder& b, TensorRef x,
                               const ConvolutionWindow& window) {
  std::vector<int64_t> padding(4);
  for (int i = 0; i < 2; ++i) {
    const int64_t size = b.Size(x, 2 + i), kernel = window.kernel[i], stride = window.stride;
    int64_t before = window.padding[i], after = before;
    if (window.rounding == ConvolutionWindow::Rounding::kSame) {
      const int64_t outputs = (size + stride - 1) / stride;
      const int64_t total = std::max<int64_t>((outputs - 1) * stride + kernel - size, 0);
      before = total / 2;
      after = total - before;
    } else if (window.rounding == ConvolutionWindow::Rounding::kCeil) {
      const int64_t left_over = (size + 2 * before - kernel) % stride;
      if (left_over > 0) after += stride - left_over;
    }
    padding[i] = before;
    padding[2 + i] = after;
  }
  return padding;
}

TensorRef Pool(ModelBuilder& b, Operator op, TensorRef x, const ConvolutionWindow& window,
               const std::string& name) {
  op.Set("kernel", std::vector<int64_t>(window.kernel.begin(), window.kernel.end()));
  op.Set("stride", std::vector<int64_t>{window.stride, window.stride});
  op.Set("padding", PaddingOf(b, x, window));
  return b.Call(std::move(op), {x}, name);
}

}  // namespace

TensorRef Convolution(ModelBuilder& b, TensorRef x, int64_t outputs,
                      const ConvolutionWindow& window, const std::string& name, int64_t groups) {
  const TensorRef weight = b.Weight(
      name + ".weight",
      {outputs, std::max<int64_t>(b.Size(x, 1) / groups, 1), window.kernel[0], window.kernel[1]});
  return b.Call({OpKind::kConv2d,
                 {{"stride", std::vector<int64_t>{window.stride, window.stride}},
                  {"padding", PaddingOf(b, x, window)},
                  {"dilation", std::vector<int64_t>{1, 1}},
                  {"groups", groups}}},
                {x, weight}, name);
}

TensorRef ChannelBias(ModelBuilder& b, TensorRef x, const std::string& name) {
  const int64_t channels = b.Size(x, 1);
  const TensorRef bias =
      b.Reshape(b.Weight(name + ".bias", {channels}), {1, channels, 1, 1}, name + "/bias");
  return b.Add(x, bias, name + "/biased");
}

TensorRef ConvolutionBiasRelu(ModelBuilder& b, TensorRef x, int64_t outputs,
                              const ConvolutionWindow& window, const std::string& name) {
  return b.Relu(ChannelBias(b, Convolution(b, x, outputs, window, name), name), name);
}

TensorRef BatchNorm(ModelBuilder& b, TensorRef x, const std::string& name, bool training,
                    double epsilon) {
  const int64_t channels = b.Size(x, 1);
  const TensorRef gamma = b.Weight(name + ".weight", {channels});
  const TensorRef beta = b.Weight(name + ".bias", {channels});
  TensorRef mean, variance;
  if (training) {
    const auto mean_of_channels = [&](TensorRef of, int64_t keepdims, const std::string& part) {
      return b.Call(
          {OpKind::kReduceMean, {{"axes", std::vector<int64_t>{0, 2, 3}}, {"keepdims", keepdims}}},
          {of}, name + part);
    };
    x = b.Call(OpKind::kSub, {x, mean_of_channels(x, 1, "/mean")}, name + "/centred");
    mean = b.Constant(name + ".zeros", {channels}, std::vector<float>(channels));
    variance = mean_of_channels(b.Call(OpKind::kMul, {x, x}, name + "/square"), 0, "/variance");
  } else {
    mean = b.Constant(name + ".running_mean", {channels});
    variance = b.Constant(name + ".running_variance", {channels});
  }
  return b.Call({OpKind::kBatchNorm, {{"epsilon", epsilon}}}, {x, gamma, beta, mean, variance},
                name);
}

TensorRef MaxPool(ModelBuilder& b, TensorRef x, const ConvolutionWindow& window,
                  const std::string& name) {
  return Pool(b, OpKind::kMaxPool, x, window, name);
}

TensorRef AvgPool(ModelBuilder& b, TensorRef x, const ConvolutionWindow& window,
                  const std::string& name, PaddingCounts padding_counts) {
  const int64_t counts = padding_counts == PaddingCounts::kYes ? 1 : 0;
  return Pool(b, {OpKind::kAvgPool, {{"count_include_pad", counts}}}, x, window, name);
}

TensorRef GlobalAvgPool(ModelBuilder& b, TensorRef x, const std::string& name) {
  return b.Call(
      {OpKind::kReduceMean, {{"axes", std::vector<int64_t>{2, 3}}, {"keepdims", int64_t{0}}}}, {x},
      name);
}

}  // namespace isomer
