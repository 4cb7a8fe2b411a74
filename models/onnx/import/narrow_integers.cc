#include "models/onnx/import/narrow_integers.h"

#include <algorithm>
#include <set>
#include <vector>

#include "absl/strings/str_cat.h"
#include "models/onnx/tensor.h"

namespace isomer {
namespace {

// What moves the elements of its first operand (of Concat: of all), and computes nothing.
bool MovesElements(const std::string& op) {
  for (const char* move : {"Concat", "DepthToSpace", "Expand", "Flatten", "Gather",
                           "GatherElements", "GatherND", "Identity", "Reshape", "Slice",
                           "SpaceToDepth", "Split", "Squeeze", "Tile", "Transpose", "Unsqueeze"}) {
    if (op == move) return true;
  }
  return false;
}

}  // namespace

absl::Status CheckOnlyCast(const OnnxGraph& graph, const onnx::ValueInfoProto& input) {
  const auto error = [&](const std::string& what) {
    return absl::UnimplementedError(
        absl::StrCat(OnnxTypeText(input.type().tensor_type().elem_type()),
                     " is read where it is cast before anything computes with it, but ", what));
  };
  std::set<std::string> narrow = {input.name()};
  for (std::vector<std::string> pending = {input.name()}; !pending.empty();) {
    const std::string name = pending.back();
    pending.pop_back();
    for (const onnx::ValueInfoProto& output : graph.outputs) {
      if (output.name() == name) return error(absl::StrCat("it is output ", QuotedName(name)));
    }
    for (const OnnxNode& node : graph.nodes) {
      const auto reads = std::find(node.inputs.begin(), node.inputs.end(), name);
      const bool captured =
          std::find(node.captures.begin(), node.captures.end(), name) != node.captures.end();
      if (reads == node.inputs.end() && !captured) continue;
      const bool standard = node.domain.empty() && !captured;
      if (standard && (node.op == "Cast" || node.op == "Shape" || node.op == "Size")) continue;
      const bool is_first = reads == node.inputs.begin() || node.op == "Concat";
      if (!standard || !is_first || !MovesElements(node.op)) {
        return error(absl::StrCat(node.label, " reads it"));
      }
      for (const std::string& output : node.outputs) {
        if (!output.empty() && narrow.insert(output).second) pending.push_back(output);
      }
    }
  }
  return absl::OkStatus();
}

}  // namespace isomer
