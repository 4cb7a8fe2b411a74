#include "models/frameworks/leaf_tables.h"

#include <optional>
#include <vector>

#include "absl/strings/str_cat.h"
#include "models/frameworks/local_attributes.h"
#include "pcg/evaluation/leaf_draws.h"

namespace isomer {
namespace {

// The weights and constants of the model: those of the plan's graph have the same names.
std::string LeavesText(const Plan& plan, const PlacedProgram& program, const PartStyle& style,
                       const SafetensorsFile& file) {
  std::map<std::string, const PlacedLeaf*> placed;
  for (const auto& [id, leaf] : program.leaves) placed[plan.graph.node(id).name] = &leaf;
  const PlacedLeaf unused = {.placements = MeshPlacements(program.mesh.sizes.size())};
  std::string text = "LEAVES = {\n";
  const Graph& model = plan.model.graph;
  for (int id = 0; id < model.num_nodes(); ++id) {
    const Node& node = model.node(id);
    if (!IsStored(node.op.kind())) continue;
    const auto at = placed.find(node.name);
    const PlacedLeaf& leaf = at == placed.end() ? unused : *at->second;
    const TensorType& type = node.outputs[0];
    absl::StrAppend(&text, "    ", PythonString(node.name), ": Leaf(", PythonTuple(type.Sizes()),
                    ", ", PlacementsText(leaf.placements), ", ",
                    ValuesText(plan.model, NodeId{id}, file));
    if (type.dtype != DataType::kFloat32) {
      absl::StrAppend(&text, ", ", PythonType(type.dtype, style.type_prefix));
    }
    if (node.op.kind() == OpKind::kConstant) {
      absl::StrAppend(&text, ", is_trained=False");
    } else if (style.global_arrays) {
      if (leaf.read.has_value()) absl::StrAppend(&text, ", read=", PlacementsText(*leaf.read));
      if (leaf.summed.has_value()) {
        absl::StrAppend(&text, ", summed=", PlacementsText(*leaf.summed));
      }
      if (leaf.sums_each) absl::StrAppend(&text, ", sums_each=True");
    }
    absl::StrAppend(&text, "),\n");
  }
  return absl::StrCat(text, "}\n");
}

std::string InputsText(const Graph& graph, const PlacedProgram& program, const PartStyle& style,
                       const std::map<NodeId, std::string>& inputs) {
  std::string text = "INPUTS = {\n";
  for (const auto& [id, name] : inputs) {
    const TensorType& type = graph.node(id).outputs[0];
    const PlacedLeaf& leaf = program.leaves.at(id);
    absl::StrAppend(&text, "    \"", name, "\": Input(", PythonTuple(type.Sizes()), ", ",
                    PythonType(type.dtype, style.type_prefix), ", ",
                    type.dtype == DataType::kBool ? 2 : InputLimit(graph, id), ", ",
                    leaf.moment_dim < 0 ? std::string("None") : absl::StrCat(leaf.moment_dim), ", ",
                    style.global_arrays ? absl::StrCat(PlacementsText(leaf.placements), ", ") : "",
                    PythonString(graph.node(id).name), "),\n");
  }
  return absl::StrCat(text, "}\n");
}

std::string OutputsText(const Graph& graph, const PlacedProgram& program, const PartStyle& style) {
  std::string text =
      "# How the outputs of micro-batches are one: along a dim, by their sum, or all the same.\n"
      "OUTPUTS = {\n";
  for (const auto& output : graph.outputs()) {
    const TensorRef root = PlacedProgram::RootOf(graph, output.tensor);
    const int dim = program.MomentDimOf(root);
    const std::string joined = dim == kSameInAll         ? std::string("None")
                               : dim == kPartialOfMoment ? std::string("\"sum\"")
                                                         : absl::StrCat(dim);
    absl::StrAppend(&text, "    ", PythonString(output.name), ": ",
                    style.global_arrays
                        ? absl::StrCat("Output(", joined, ", ",
                                       PlacementsText(AddedUp(program.PlacementsOf(root))), ")")
                        : joined,
                    ",\n");
  }
  return absl::StrCat(text, "}\n");
}

}  // namespace

std::string ValuesText(const Model& model, NodeId leaf, const SafetensorsFile& file) {
  const Node& node = model.graph.node(leaf);
  const auto found = model.weights.find(node.name);
  if (found != model.weights.end()) {
    if (const FileRange* range = found->second.file(); range != nullptr) {
      return absl::StrCat("InFile(", PythonString(range->path), ", ", range->offset, ", \"",
                          PythonType(range->dtype, ""), "\")");
    }
    DataType stored = node.outputs[0].dtype;
    if (IsFloat(stored)) stored = DataType::kFloat32;
    return absl::StrCat("InFile(None, ", file.offsets.at(node.name), ", \"", PythonType(stored, ""),
                        "\")");
  }
  constexpr uint64_t kSeed = 1;  // as isomer-run's
  const LeafRole role = RoleOf(model.graph, model.graph.Users(), leaf);
  const std::vector<int64_t> sizes = node.outputs[0].Sizes();
  return absl::StrCat("Drawn(", Random::StreamOf(kSeed, node.name), ", ",
                      StartsAtOne(role) ? "None" : PythonNumber(Deviation(role, sizes)), ")");
}

int64_t InputLimit(const Graph& graph, NodeId input) {
  return RoleOf(graph, graph.Users(), input).limit;
}

std::map<NodeId, std::string> InputNames(const Graph& graph, const OperatorText& operators) {
  PythonNames names(TakenNames(operators));
  std::map<NodeId, std::string> inputs;
  for (int id = 0; id < graph.num_nodes(); ++id) {
    const Node& node = graph.node(id);
    if (node.op.kind() == OpKind::kInput) inputs[NodeId{id}] = names.Make(node.name);
  }
  return inputs;
}

std::map<std::string, std::string> ByName(const Graph& graph,
                                          const std::map<NodeId, std::string>& inputs) {
  std::map<std::string, std::string> by_name;
  for (const auto& [id, name] : inputs) by_name[graph.node(id).name] = name;
  return by_name;
}

std::string TablesText(const Plan& plan, const PlacedProgram& program, const PartStyle& style,
                       const std::map<NodeId, std::string>& inputs, const SafetensorsFile& file) {
  return absl::StrCat(
      LeavesText(plan, program, style, file), "\n", InputsText(plan.graph, program, style, inputs),
      "\n", OutputsText(plan.graph, program, style),
      "\nLOSS = ", plan.mode == "training" ? PythonString(plan.model.loss) : "None", "\n");
}

}  // namespace isomer
