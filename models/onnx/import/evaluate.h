#ifndef ISOMER_MODELS_ONNX_IMPORT_EVALUATE_H_
#define ISOMER_MODELS_ONNX_IMPORT_EVALUATE_H_

#include <optional>
#include <vector>

#include "models/onnx/import/node_importer.h"
#include "models/onnx/import/operators.h"

namespace isomer {

// The outputs of a node whose operands are constants that are not trained, by importing it alone
// and evaluating what comes out: the value that the graph would have. Nothing for nodes that are
// not of this kind, that cannot be imported, or whose work is worth leaving to the graph: for
// itself, or because state->work_budget, from which it is taken, has been used up.
std::optional<std::vector<OnnxTensor>> EvaluateConstantNode(const OnnxNode& node,
                                                            const OnnxOperator& op,
                                                            ImportState* state);

}  // namespace isomer

#endif  // ISOMER_MODELS_ONNX_IMPORT_EVALUATE_H_
