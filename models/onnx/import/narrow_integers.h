// Inputs of 8 and 16 bits: UINT8, INT8, UINT16, INT16.
#ifndef ISOMER_MODELS_ONNX_IMPORT_NARROW_INTEGERS_H_
#define ISOMER_MODELS_ONNX_IMPORT_NARROW_INTEGERS_H_

#include <string>

#include "absl/status/status.h"
#include "models/onnx/graph/graph.h"

namespace isomer {

// Ok if nothing computes in the type of `input`, a graph's input of such a type: it is cast to
// another one, perhaps after its elements were moved. Then INT32, which has all of its values,
// stands for it. The error names the node that computes, or the output that is of the type, and
// begins with the type.
absl::Status CheckOnlyCast(const OnnxGraph& graph, const onnx::ValueInfoProto& input);

}  // namespace isomer

#endif  // ISOMER_MODELS_ONNX_IMPORT_NARROW_INTEGERS_H_
