// Nodes that compute the same of the same constants are one.
//
// Exporters that do not optimise write the mask of every layer again, out of literals of its own.
// Made once it is computed once at import, and layers that are alike have one mask.
#ifndef ISOMER_MODELS_ONNX_GRAPH_EQUAL_NODES_H_
#define ISOMER_MODELS_ONNX_GRAPH_EQUAL_NODES_H_

#include "models/onnx/graph/graph.h"

namespace isomer {

// Uses of small literals become uses of one of those that are equal. Of nodes that depend on no
// data and on nothing that is trained, each that repeats an earlier one goes, and its users take
// the earlier one's outputs. Names of the graph's outputs, and those that subgraphs use, stay.
void MergeEqualNodes(OnnxGraph* graph);

}  // namespace isomer

#endif  // ISOMER_MODELS_ONNX_GRAPH_EQUAL_NODES_H_
