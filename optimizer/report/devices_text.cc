#include "optimizer/report/devices_text.h"

#include <cstdint>
#include <set>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace isomer {
namespace {

constexpr size_t kRangesShown = 6;

}  // namespace

std::string DevicesText(const MappedGraph& mapped, absl::Span<const NodeId> members) {
  std::set<std::pair<int64_t, int64_t>> ranges;
  for (NodeId id : members) {
    const MachineView& view = mapped.views[id.value];
    ranges.emplace(view.start, LastDevice(view, mapped.graph.node(id).outputs[0]));
  }
  std::vector<std::string> texts;
  for (const auto& [first, last] : ranges) {
    if (texts.size() == kRangesShown) break;
    texts.push_back(first == last ? absl::StrCat(first) : absl::StrCat(first, " to ", last));
  }
  std::string text = absl::StrJoin(texts, ", ");
  if (ranges.size() > texts.size()) absl::StrAppend(&text, ", .. (", ranges.size(), " ranges)");
  return text;
}

Json PlacementsJson(const MappedGraph& mapped) {
  Json json = Json::EmptyArray();
  for (NodeId id : mapped.graph.TopologicalOrder()) {
    const Node& node = mapped.graph.node(id);
    const MachineView& view = mapped.views[id.value];
    Json one;
    one["name"] = node.name;
    one["operator"] = node.op.ToString();
    one["types"] = Json::EmptyArray();
    for (const TensorType& type : node.outputs) one["types"].Append(type.ToString());
    one["first_device"] = view.start;
    one["last_device"] = LastDevice(view, node.outputs[0]);
    one["strides"] = Json::EmptyArray();
    for (int64_t stride : view.strides) one["strides"].Append(stride);
    if (!view.outer.empty()) one["outer_strides"] = Json::EmptyArray();
    for (const OuterStride& outer : view.outer) {
      Json axis;
      axis["axis"] = outer.axis;
      axis["period"] = outer.period;
      axis["stride"] = outer.stride;
      one["outer_strides"].Append(std::move(axis));
    }
    one["micro_batches"] = NumMoments(view);
    json.Append(std::move(one));
  }
  return json;
}

}  // namespace isomer
