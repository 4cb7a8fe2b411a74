// From which opset on a node of a file is valid as it is written.
#ifndef ISOMER_MODELS_ONNX_EXPORT_OPSETS_H_
#define ISOMER_MODELS_ONNX_EXPORT_OPSETS_H_

#include <cstdint>
#include <optional>

#include "models/onnx/onnx.pb.h"

namespace isomer {

// What is written at least; a file has the least opset that all of its nodes are valid in.
inline constexpr int64_t kLeastOpset = 17;
// From here on the axes of all reductions are an operand; before, of all but ReduceSum an
// attribute.
inline constexpr int64_t kAxesAreOperands = 18;

// The first opset that has the operator of `node`, of the default domain, with these attributes;
// and, if `bfloat16`, tensors of that type. None: the operator is in no line of the table.
std::optional<int64_t> FirstOpsetOf(const onnx::NodeProto& node, bool bfloat16);

// The IR version that came with an opset. REQUIRES: at least kLeastOpset.
int64_t IrVersionOf(int64_t opset);

}  // namespace isomer

#endif  // ISOMER_MODELS_ONNX_EXPORT_OPSETS_H_
