// How a window moves over an image: the attributes that convolutions and pools share.
#ifndef ISOMER_MODELS_ONNX_IMPORT_WINDOW_H_
#define ISOMER_MODELS_ONNX_IMPORT_WINDOW_H_

#include <cstdint>
#include <vector>

#include "models/onnx/import/node_importer.h"

namespace isomer {

// Each list has an entry per spatial dim; padding all begins, then all ends.
struct Window {
  std::vector<int64_t> kernel, stride, padding, dilation;

  int rank() const { return static_cast<int>(kernel.size()); }
  // Elements from the first to the last that the window touches.
  int64_t Span(int i) const { return dilation[i] * (kernel[i] - 1) + 1; }
  // Positions of the window along dim i of an image of `size`. With `rounds_up` also the one that
  // reaches past the end, unless it begins in the padding there.
  int64_t Positions(int i, int64_t size, bool rounds_up = false) const;
};

// The sizes of the spatial dims of x [n, c, spatial..]; fails where there are not 1 to 3.
std::vector<int64_t> ImageSizes(NodeImporter& node, TensorRef x);

// Reads kernel_shape (`kernel` where it is absent), strides, dilations, pads and auto_pad.
Window ReadWindow(NodeImporter& node, std::vector<int64_t> kernel,
                  const std::vector<int64_t>& image);
// The same without auto_pad.
Window ReadWindowAttributes(NodeImporter& node, std::vector<int64_t> kernel, int rank);

}  // namespace isomer

#endif  // ISOMER_MODELS_ONNX_IMPORT_WINDOW_H_
