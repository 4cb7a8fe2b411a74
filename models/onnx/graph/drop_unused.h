#ifndef ISOMER_MODELS_ONNX_GRAPH_DROP_UNUSED_H_
#define ISOMER_MODELS_ONNX_GRAPH_DROP_UNUSED_H_

#include "pcg/ir/plan.h"

namespace isomer {

// Without calls that no output needs, and without constants that nothing uses.
void DropUnused(Model* model);

}  // namespace isomer

#endif  // ISOMER_MODELS_ONNX_GRAPH_DROP_UNUSED_H_
