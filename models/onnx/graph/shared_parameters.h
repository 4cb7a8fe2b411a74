// Parameters that the dynamo exporter wrote several times, or repeated, are one again.
#ifndef ISOMER_MODELS_ONNX_GRAPH_SHARED_PARAMETERS_H_
#define ISOMER_MODELS_ONNX_GRAPH_SHARED_PARAMETERS_H_

#include <string>
#include <vector>

#include "models/onnx/graph/graph.h"

namespace isomer {

// Of what the exporter computed from parameters (folded_from):
//   repeated, as a class token for each sample of the example batch, or the row of a table that all
//     tokens of the example have: one of each element is trained, behind an Expand;
//   equal to a parameter that the file has, too, as the first state of a recurrent layer, a bias
//     and a product with zeros: it is that parameter, behind a Reshape;
//   equal to another that was computed from the same, as the matrix of a layer that is called
//     twice, which the exporter turns for each call: they are one.
// Equal elements alone tell none of this, as parameters are initialised so. `notes` gets a line on
// those that are one. REQUIRES: literals are marked (MarkLiterals).
void RestoreSharedParameters(OnnxGraph* graph, std::vector<std::string>* notes);

}  // namespace isomer

#endif  // ISOMER_MODELS_ONNX_GRAPH_SHARED_PARAMETERS_H_
