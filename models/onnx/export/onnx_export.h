// Models as ONNX files, for other programs to run.
//
// What is written is a sequential graph for inference, in opset 17, or the first after it that has
// all that is written (opsets.h): one ONNX node for an operator that the standard has, several for
// one that it has not (Linear, Attention, the recurrent cells). Inputs, outputs and weights keep
// their names; weights become initializers, constants Constant nodes, and those without a value
// inputs.
//
// Refused: parallel operators, Dropout (it is random), Top2Gating.
#ifndef ISOMER_MODELS_ONNX_EXPORT_ONNX_EXPORT_H_
#define ISOMER_MODELS_ONNX_EXPORT_ONNX_EXPORT_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "pcg/ir/plan.h"

namespace isomer {

enum class StoredWeights {
  kAsTheyAre,  // weights and what is done with them
  kPrepared,   // of weights that are joined, transposed or scaled first, what comes out of that
               // (prepared_weights.h), for who runs the file; others keep their names
};

// The contents of an .onnx file: `graph`, which may be another form of model.graph, with the values
// that `model` has for its leaves. Errors name the node: "%3 dropout 'd': it has no form in ONNX".
absl::StatusOr<std::string> OnnxFileOf(const Model& model, const Graph& graph,
                                       StoredWeights weights = StoredWeights::kAsTheyAre);

}  // namespace isomer

#endif  // ISOMER_MODELS_ONNX_EXPORT_ONNX_EXPORT_H_
