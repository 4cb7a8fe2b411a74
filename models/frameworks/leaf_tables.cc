#include "models/frameworks/leaf_tables.h"

#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "models/frameworks/local_attributes.h"
#include "models/frameworks/operator_text.h"
#include "pcg/evaluation/leaf_draws.h"

namespace isomer {

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

std::string PlacementsText(const MeshPlacements& placements) {
  std::vector<std::string> texts;
  for (const MeshPlacement& placement : placements) {
    texts.push_back(placement.kind == MeshPlacement::Kind::kReplicate ? "R"
                    : placement.kind == MeshPlacement::Kind::kPartial
                        ? "P"
                        : absl::StrCat("S", placement.dim));
  }
  return absl::StrCat("[", absl::StrJoin(texts, ", "), "]");
}

}  // namespace isomer
