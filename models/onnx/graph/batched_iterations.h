// Iterations of an unrolled loop that do not depend on each other.
#ifndef ISOMER_MODELS_ONNX_GRAPH_BATCHED_ITERATIONS_H_
#define ISOMER_MODELS_ONNX_GRAPH_BATCHED_ITERATIONS_H_

#include "pcg/ir/plan.h"

namespace isomer {

// Turns
//
//   concat(f(x[0:s]), f(x[s:2s]), .., f(x[(t-1)s:ts]))
//
// into f of all parts at once, with a dim of t before the dims of one: x, whose dim is cut into
// t and s, enters it, and what does not depend on the part is shared. This is what is left of
// nn.EmbeddingBag, whose bags PyTorch's exporters write as iterations of a loop, of Scan without a
// state, and of loops over slices in Python. f is made of pointwise calls, look-ups, reductions,
// softmax, transposes and reshapes; the cuts are parts of Splits along one dim. Operands of the
// concat that are alike, kFewestIterations and more one behind the other, become one operand.
//
// The same sums are taken in the same order, but for gradients of what is shared, whose sums over
// the parts are one. REQUIRES: the types of the model are sequential.
void BatchIterations(Model* model);

}  // namespace isomer

#endif  // ISOMER_MODELS_ONNX_GRAPH_BATCHED_ITERATIONS_H_
