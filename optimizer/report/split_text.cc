#include "optimizer/report/split_text.h"

#include <numeric>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "optimizer/sharding/expansion.h"
#include "pcg/ir/operator_facts.h"
#include "pcg/ir/type_inference.h"
#include "pcg/support/status_macros.h"

namespace isomer {
namespace {

// The devices of an axis of the given degree and stride.
std::string PlaceText(int64_t degree, int64_t stride, const Machine& machine) {
  const int64_t node = machine.devices_per_node();
  if (stride >= node) return absl::StrCat(degree, " nodes");
  if (stride * degree <= node) return absl::StrCat(degree, " devices of a node");
  return absl::StrCat(degree, " devices");
}

bool IsProduct(OpKind kind) { return kind == OpKind::kMatMul || kind == OpKind::kLinear; }

// Whether a tensor is a weight, as it is stored or arranged.
bool IsOfWeight(const Graph& graph, TensorRef tensor) {
  const Node* node = &graph.node(tensor.node);
  while (IsParallel(node->op.kind()) || IsLayout(node->op.kind()) || IsFloatCast(node->op)) {
    node = &graph.node(node->inputs[0].node);
  }
  return IsStored(node->op.kind());
}

std::string RoleOf(const Graph& graph, const Node& node, const Declaration& d, int v) {
  const bool in_stripes = IsAttention(node.op.kind()) && node.op.Int("causal") > 1;
  if (in_stripes && d.dims[v].name == "p") return "in stripes";
  if (!IsProduct(node.op.kind()) || !IsOfWeight(graph, node.inputs[1])) return "";
  return d.dims[v].name == "n" ? "column-parallel" : d.dims[v].name == "k" ? "row-parallel" : "";
}

// A reader's name for an iteration dim.
std::string DimText(const Operator& op, const Declaration& d, int v) {
  const std::string& name = d.dims[v].name;
  const bool contraction = IsProduct(op.kind()) || op.kind() == OpKind::kConv2d;
  if (contraction && name == "n") return IsProduct(op.kind()) ? "columns" : "batch";
  if (contraction && name == "m") return "rows";
  if (contraction && (name == "k" || name == "c")) return "contraction";
  if (contraction && name == "o") return "output channels";
  for (int i = 0; i < static_cast<int>(d.outputs[0].size()); ++i) {
    if (d.LeadOfOutputDim(0, i) == v) return i == 0 ? "batch" : absl::StrCat("dim ", i);
  }
  return absl::StrCat("sum over ", name);
}

}  // namespace

absl::StatusOr<CallSplit> SplitOf(const MappedGraph& mapped, NodeId id, const Machine& machine) {
  const Node& node = mapped.graph.node(id);
  std::vector<TensorType> operands;
  for (TensorRef input : node.inputs) operands.push_back(mapped.graph.type(input));
  ISOMER_ASSIGN_OR_RETURN(const Sharding sharding, InferSharding(node.op, operands));
  const Declaration& d = sharding.declaration;
  const MachineView& view = mapped.views[id.value];
  CallSplit split;
  for (int v = 0; v < static_cast<int>(d.dims.size()); ++v) {
    if (sharding.degrees[v] == 1) continue;
    // The stride of the output coordinate for this dim.
    int64_t stride = view.strides.back();
    int64_t moments = view.MomentsOfAxis(view.strides.size() - 1);
    if (d.dims[v].kind == DimKind::kSum) {
      for (int w = v + 1; w < static_cast<int>(d.dims.size()); ++w) {
        if (d.dims[w].kind == DimKind::kSum) stride *= sharding.degrees[w];
      }
    } else {
      for (int i = 0; i < static_cast<int>(d.outputs[0].size()); ++i) {
        if (d.LeadOfOutputDim(0, i) != v) continue;
        stride = view.strides[i];
        moments = view.MomentsOfAxis(i);
      }
    }
    const int64_t devices = sharding.degrees[v] / moments;
    split.parts.push_back({DimText(node.op, d, v), moments, devices,
                           PlaceText(devices, stride, machine), RoleOf(mapped.graph, node, d, v)});
  }
  const size_t copies_axis = view.strides.size() - 2;
  split.copies = node.outputs[0].copies / view.MomentsOfAxis(copies_axis);
  for (const ViewDigit& digit : view.DigitsOf(copies_axis, split.copies)) {
    absl::StrAppend(&split.copies_place, split.copies_place.empty() ? "" : " in each of ",
                    PlaceText(digit.extent, digit.stride, machine));
  }
  split.first_device = view.start;
  return split;
}

std::string CallSplit::ToString(bool with_start) const {
  if (parts.empty() && copies == 1) return absl::StrCat("whole, on device ", first_device);
  std::vector<std::string> texts;
  for (const Part& part : parts) {
    std::string text = part.dim;
    if (part.micro_batches > 1) {
      absl::StrAppend(&text, " in ", part.micro_batches, " micro-batches");
    }
    if (part.devices > 1) absl::StrAppend(&text, " over ", part.place);
    if (!part.role.empty() && part.devices > 1) absl::StrAppend(&text, " (", part.role, ")");
    texts.push_back(std::move(text));
  }
  if (parts.empty()) texts.push_back("whole");
  if (copies > 1) texts.push_back(absl::StrCat("by each of ", copies_place));
  if (with_start && first_device != 0) {
    texts.push_back(absl::StrCat("from device ", first_device));
  }
  return absl::StrJoin(texts, ", ");
}

absl::StatusOr<std::string> WhyWhole(const Operator& op, absl::Span<const TensorType> operands,
                                     int64_t devices, const RuleIndex& rules) {
  ISOMER_ASSIGN_OR_RETURN(const Sharding sharding, InferSharding(op, operands));
  const Declaration& d = sharding.declaration;
  const Expansions expansions = FindExpansions(rules, op, operands);
  if (expansions.splits.empty()) return "because no rule splits it";
  std::vector<std::string> possible;
  for (const Expansion& split : expansions.splits) {
    if (std::gcd(d.dims[split.dim].size.value(), devices) == 1) continue;
    possible.push_back(DimText(op, d, split.dim));
  }
  if (possible.empty()) {
    return absl::StrCat("because none of its sizes has a divisor in common with ", devices,
                        " devices");
  }
  return absl::StrCat("though ", absl::StrJoin(possible, " or "), " could be split");
}

}  // namespace isomer
