// The form of a graph in which other programs run convolutions fastest.
//
// onnxruntime, and others, compute a convolution with what is added to its channels and the Relu
// behind it as one kernel, in a blocked layout that goes on through pooling, sums and
// concatenations. A Split, a Relu behind a pooling, or a constant minus a convolution leave that
// layout and come back to it, which costs more than our algebra gained by them: of SqueezeNet a
// fifth of the time, of NASNet-A half. So
//
//   split(conv(x, W))         -> conv(x, W[i]), a convolution for each part, and of one with groups
//                                conv(x[i], W[i]) for x that was concatenated; likewise of samples
//   split(relu(y)), split(y + c) -> relu, + c[i] of the parts, if that leads to convolutions
//   relu(max_pool(y))         -> max_pool(relu(y)), and likewise + c
//   relu(concat(y, z))        -> concat(relu(y), relu(z)), and likewise + c
//   (x + conv(y, W)) + c      -> x + (conv(y, W) + c)
//   c - conv(x, W), x - c     -> conv(x, -W) + c, x + -c
//   2 x                       -> x + x
//   concat(concat(x, y), z)   -> concat(x, y, z)
//
// for c of weights alone with a number for each channel: equal in real arithmetic, and what is made
// of W and c is computed before the file is written (prepared_weights.h).
#ifndef ISOMER_MODELS_ONNX_EXPORT_CONVOLUTION_FORM_H_
#define ISOMER_MODELS_ONNX_EXPORT_CONVOLUTION_FORM_H_

#include "absl/status/statusor.h"
#include "pcg/ir/graph.h"

namespace isomer {

// Of a graph that is parallel nothing is changed.
absl::StatusOr<Graph> ConvolutionForm(Graph graph);

}  // namespace isomer

#endif  // ISOMER_MODELS_ONNX_EXPORT_CONVOLUTION_FORM_H_
