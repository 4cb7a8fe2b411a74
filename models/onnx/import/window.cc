#include "models/onnx/import/window.h"

#include <algorithm>
#include <utility>

namespace isomer {

int64_t Window::Positions(int i, int64_t size, bool rounds_up) const {
  const int64_t room = size + padding[i] + padding[rank() + i] - Span(i);
  if (room < 0) return 0;
  int64_t positions = room / stride[i] + 1;
  if (rounds_up && room % stride[i] != 0 && positions * stride[i] < size + padding[i]) ++positions;
  return positions;
}

std::vector<int64_t> ImageSizes(NodeImporter& node, TensorRef x) {
  if (!node.ok()) return {};
  const std::vector<int64_t> sizes = node.Sizes(x);
  if (!node.Expect(sizes.size() >= 3 && sizes.size() <= 5, "its input has rank ", sizes.size(),
                   "; images [n, c, ..] with 1 to 3 further dims are read")) {
    return {};
  }
  return {sizes.begin() + 2, sizes.end()};
}

Window ReadWindowAttributes(NodeImporter& node, std::vector<int64_t> kernel, int rank) {
  const size_t n = rank;
  Window window;
  window.kernel = node.attributes.Ints("kernel_shape", std::move(kernel));
  window.stride = node.attributes.Ints("strides", std::vector<int64_t>(n, 1));
  window.dilation = node.attributes.Ints("dilations", std::vector<int64_t>(n, 1));
  window.padding = node.attributes.Ints("pads", std::vector<int64_t>(2 * n, 0));
  if (!node.Expect(window.kernel.size() == n && window.stride.size() == n &&
                       window.dilation.size() == n && window.padding.size() == 2 * n,
                   "kernel_shape, strides and dilations need ", n, " numbers, pads ", 2 * n,
                   ": images have ", n, " dims")) {
    return window;
  }
  for (const auto* list : {&window.kernel, &window.stride, &window.dilation, &window.padding}) {
    for (int64_t value : *list) {
      const int64_t least = list == &window.padding ? 0 : 1;
      if (!node.Expect(value >= least && value <= (1 << 24),
                       "a kernel, stride, dilation or pad is ", value)) {
        return window;
      }
    }
  }
  return window;
}

Window ReadWindow(NodeImporter& node, std::vector<int64_t> kernel,
                  const std::vector<int64_t>& image) {
  const int rank = static_cast<int>(image.size());
  Window window = ReadWindowAttributes(node, std::move(kernel), rank);
  const std::string auto_pad = node.attributes.String("auto_pad", "NOTSET");
  if (!node.ok() || auto_pad == "NOTSET") return window;
  window.padding.assign(2 * rank, 0);
  if (auto_pad == "VALID") return window;
  if (!node.Expect(auto_pad == "SAME_UPPER" || auto_pad == "SAME_LOWER", "auto_pad ",
                   QuotedName(auto_pad), " is not known")) {
    return window;
  }
  // As many windows as strides fit the image; an odd element of padding goes to one side.
  for (int i = 0; i < rank; ++i) {
    const int64_t windows = (image[i] + window.stride[i] - 1) / window.stride[i];
    const int64_t total =
        std::max<int64_t>(0, (windows - 1) * window.stride[i] + window.Span(i) - image[i]);
    window.padding[i] = auto_pad == "SAME_UPPER" ? total / 2 : total - total / 2;
    window.padding[rank + i] = total - window.padding[i];
  }
  return window;
}

}  // namespace isomer
