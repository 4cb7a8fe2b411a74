#ifndef ISOMER_MODELS_ONNX_GRAPH_BROADCAST_CONSTANTS_H_
#define ISOMER_MODELS_ONNX_GRAPH_BROADCAST_CONSTANTS_H_

#include "pcg/ir/plan.h"

namespace isomer {

// Elementwise calls repeat small operands by themselves:
//
//   add(x, expand(c))   c a constant      becomes   add(x, c)
//
// where the result keeps its sizes. An expand that nothing uses any more goes.
// REQUIRES: the types of the model are sequential.
void BroadcastConstants(Model* model);

}  // namespace isomer

#endif  // ISOMER_MODELS_ONNX_GRAPH_BROADCAST_CONSTANTS_H_
