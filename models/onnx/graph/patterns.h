// Undoing what exporters take apart.
//
//   LayerNormalization(x, w, b):  m = ReduceMean(x); c = Sub(x, m); v = ReduceMean(Pow(c, 2))
//                                 Add(Mul(Div(c, Sqrt(Add(v, epsilon))), w), b)
//   Gelu(x):                      Mul(Mul(x, Add(Erf(Div(x, sqrt(2))), 1)), 0.5)
//   Swish(x):                     Mul(x, Sigmoid(x))
//
// with the operands of Add and Mul in any order, Mul(c, c) for Pow(c, 2), Mul(x, 1/sqrt(2)) for the
// Div, and the three factors of Gelu multiplied in any order.
#ifndef ISOMER_MODELS_ONNX_GRAPH_PATTERNS_H_
#define ISOMER_MODELS_ONNX_GRAPH_PATTERNS_H_

#include "models/onnx/graph/graph.h"

namespace isomer {

// Turns the last node of every such pattern into one LayerNormalization, Gelu or Swish node. The
// nodes before it stay; where nothing else uses them they are dead.
void RecognizePatterns(OnnxGraph* graph);

// For every node, whether an output of the graph needs it.
std::vector<bool> LiveNodes(const OnnxGraph& graph);

}  // namespace isomer

#endif  // ISOMER_MODELS_ONNX_GRAPH_PATTERNS_H_
