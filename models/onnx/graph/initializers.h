// What the passes over initializers share: names as PyTorch's exporters give them, and values.
#ifndef ISOMER_MODELS_ONNX_GRAPH_INITIALIZERS_H_
#define ISOMER_MODELS_ONNX_GRAPH_INITIALIZERS_H_

#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "models/onnx/graph/graph.h"

namespace isomer {

// "add" of "add", "add_1" and "_add_12": what nodes of a traced program are called after.
absl::string_view StemOf(absl::string_view name);

// The dynamo exporter calls what it adds to a program "val_" and a number, and the integers in its
// functions "int64_1", "int64_0_1d_31".
bool IsOfExporter(absl::string_view name);

// That an operator of a program of that stem makes a tensor of sizes and numbers alone.
bool MakesTensors(absl::string_view stem);

// The tensors of modules, parameters among them, that initializer `name` was computed from; none
// where the file says nothing of it.
std::vector<std::string> ModuleTensorsOf(const std::string& name, const OnnxGraph& graph);

// REQUIRES: literals are marked (MarkLiterals), or are not to be told apart.
bool IsTrained(const OnnxTensor& tensor);

// REQUIRES: tensor.is_float().
bool AllEqual(const OnnxTensor& tensor);

// `name`, or with a number behind it where it is taken; it is taken from now on.
std::string UnusedName(const std::string& name, OnnxGraph* graph);

}  // namespace isomer

#endif  // ISOMER_MODELS_ONNX_GRAPH_INITIALIZERS_H_
