// The tables of leaves, inputs and outputs that an exported file begins with.
#ifndef ISOMER_MODELS_FRAMEWORKS_LEAF_TABLES_H_
#define ISOMER_MODELS_FRAMEWORKS_LEAF_TABLES_H_

#include <map>
#include <string>

#include "models/frameworks/operator_text.h"
#include "models/frameworks/part_writer.h"
#include "models/frameworks/placed_program.h"
#include "models/frameworks/safetensors.h"
#include "pcg/ir/plan.h"

namespace isomer {

// A file for a framework, and the weights that lie beside it.
struct FrameworkExport {
  std::string python;
  std::string weights;  // a .safetensors file; empty: the model holds no values
  std::vector<std::string> notes;
};

// "InFile(None, 128, \"float32\")" or "Drawn(7, 0.02)": where the first values come from.
std::string ValuesText(const Model& model, NodeId leaf, const SafetensorsFile& file);

// Of integers of an input: they are less. 2 for others.
int64_t InputLimit(const Graph& graph, NodeId input);

// What the inputs of a graph are called in Python, and the same by their own names.
std::map<NodeId, std::string> InputNames(const Graph& graph, const OperatorText& operators);
std::map<std::string, std::string> ByName(const Graph& graph,
                                          const std::map<NodeId, std::string>& inputs);

// LEAVES, INPUTS, OUTPUTS and LOSS.
std::string TablesText(const Plan& plan, const PlacedProgram& program, const PartStyle& style,
                       const std::map<NodeId, std::string>& inputs, const SafetensorsFile& file);

}  // namespace isomer

#endif  // ISOMER_MODELS_FRAMEWORKS_LEAF_TABLES_H_
