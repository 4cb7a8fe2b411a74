// Names in graphs that are attributes of nodes: the branches of If, the bodies of Loop and Scan.
// Such a graph sees the tensors around it.
#ifndef ISOMER_MODELS_ONNX_GRAPH_SUBGRAPH_H_
#define ISOMER_MODELS_ONNX_GRAPH_SUBGRAPH_H_

#include <initializer_list>
#include <map>
#include <set>
#include <string>

#include "models/onnx/onnx.pb.h"

namespace isomer {

// Names that the graphs of `attribute`, and those inside of them, use and do not define.
std::set<std::string> CapturesOf(const onnx::AttributeProto& attribute);

// Adds all names that `node`, and graphs inside of it, define or use; those of a whole graph.
void AddNames(const onnx::NodeProto& node, std::set<std::string>* names);
std::set<std::string> NamesIn(const onnx::GraphProto& graph);

// `name` and a slash, and a number where that takes it, so that none of the `used` names begins
// with it. It is short: in place of long names stands "inner".
std::string UnusedPrefix(const std::string& name,
                         std::initializer_list<const std::set<std::string>*> used);

// Old names and new ones.
using Renaming = std::map<std::string, std::string>;
// In `graph`, and graphs inside of it; also names from around it that it uses.
void RenameAll(const Renaming& renaming, onnx::GraphProto* graph);

// Puts `prefix` before every name that `graph` defines and that is among `taken`.
void RenameDefined(const std::string& prefix, const std::set<std::string>& taken,
                   onnx::GraphProto* graph);

}  // namespace isomer

#endif  // ISOMER_MODELS_ONNX_GRAPH_SUBGRAPH_H_
