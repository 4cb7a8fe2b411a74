#include "pcg/schedule/schedule.h"

#include <algorithm>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace isomer {

const char* PhaseName(Phase phase) {
  switch (phase) {
    case Phase::kLoad:
      return "load";
    case Phase::kForward:
      return "forward";
    case Phase::kBackward:
      return "backward";
    case Phase::kUpdate:
      return "update";
    case Phase::kUnload:
      return "unload";
  }
  return "?";
}

const char* TaskKindName(TaskKind kind) {
  switch (kind) {
    case TaskKind::kLoad:
      return "load";
    case TaskKind::kFeed:
      return "feed";
    case TaskKind::kCompute:
      return "compute";
    case TaskKind::kComputeGradient:
      return "compute_gradient";
    case TaskKind::kFill:
      return "fill";
    case TaskKind::kAccumulate:
      return "accumulate";
    case TaskKind::kConvert:
      return "convert";
    case TaskKind::kLocal:
      return "local";
    case TaskKind::kAllReduce:
      return "all_reduce";
    case TaskKind::kReduceScatter:
      return "reduce_scatter";
    case TaskKind::kAllGather:
      return "all_gather";
    case TaskKind::kAllToAll:
      return "all_to_all";
    case TaskKind::kReduce:
      return "reduce";
    case TaskKind::kBroadcast:
      return "broadcast";
    case TaskKind::kSendReceive:
      return "send_receive";
    case TaskKind::kUpdate:
      return "update";
    case TaskKind::kUnload:
      return "unload";
    case TaskKind::kOffload:
      return "offload";
    case TaskKind::kFetch:
      return "fetch";
  }
  return "?";
}

bool IsCommunication(TaskKind kind) {
  return kind == TaskKind::kAllReduce || kind == TaskKind::kReduceScatter ||
         kind == TaskKind::kAllGather || kind == TaskKind::kAllToAll || kind == TaskKind::kReduce ||
         kind == TaskKind::kBroadcast || kind == TaskKind::kSendReceive;
}

namespace {

const char* RolePrefix(BufferRole role) {
  switch (role) {
    case BufferRole::kGradient:
    case BufferRole::kGradientShard:
      return "d";
    case BufferRole::kParameterShard:
      return "new ";
    case BufferRole::kSaved:
      return "saved ";
    case BufferRole::kState:
      return "state ";
    case BufferRole::kMaster:
      return "master ";
    case BufferRole::kOffloaded:
      return "offloaded ";
    default:
      return "";
  }
}

std::string BufferText(const Schedule& schedule, BufferId id) {
  if (id == kNoBuffer) return "-";
  const Buffer& buffer = schedule.buffers[id];
  std::string text = RolePrefix(buffer.role);
  absl::StrAppend(&text, "%", buffer.tensor.node.value);
  if (buffer.tensor.output != 0) absl::StrAppend(&text, ".", buffer.tensor.output);
  std::string sum = buffer.partials == 1 ? "" : absl::StrCat("+", buffer.partials - 1);
  if (buffer.partial_step > 1) absl::StrAppend(&sum, "x", buffer.partial_step);
  return absl::StrCat(text, "#", buffer.shard, sum, "@", buffer.device, buffer.box.ToString(),
                      buffer.layout == Layout::kChannelsLast ? "channels_last" : "");
}

}  // namespace

std::vector<BufferId> OfSegment(const Task& task, const BufferList& list, size_t segment) {
  std::vector<BufferId> ids;
  for (size_t i = segment; i < list.size(); i += task.segments) ids.push_back(list[i]);
  return ids;
}

const std::string& NameOf(const Graph& graph, const Schedule::HostTensor& parameter) {
  return graph.node(parameter.leaves[0]).name;
}

std::vector<MachineView> SequentialViews(const Graph& graph) {
  std::vector<MachineView> views(graph.num_nodes());
  for (int i = 0; i < graph.num_nodes(); ++i) {
    const Node& node = graph.node(i);
    if (!node.outputs.empty()) views[i].strides.assign(node.outputs[0].rank() + 2, 0);
  }
  return views;
}

std::vector<BufferId> Schedule::Distinct(const std::vector<BufferId>& ids) const {
  std::vector<BufferId> distinct;
  std::set<std::pair<std::vector<int64_t>, std::vector<int64_t>>> boxes;
  for (BufferId id : ids) {
    if (id == kNoBuffer) continue;
    if (boxes.emplace(buffers[id].box.origin, buffers[id].box.shape).second) distinct.push_back(id);
  }
  return distinct;
}

std::string Schedule::ToString(const Graph& graph) const {
  std::string text;
  for (size_t t = 0; t < tasks.size(); ++t) {
    const Task& task = tasks[t];
    const auto buffers_text = [this](std::string* out, BufferId id) {
      out->append(BufferText(*this, id));
    };
    std::vector<std::string> written;
    for (size_t w = 0; w < task.writes.size(); ++w) {
      written.push_back(absl::StrCat(Adds(task, w) ? "+=" : "", BufferText(*this, task.writes[w])));
    }
    absl::StrAppend(&text, t, " ", PhaseName(task.phase));
    if (task.moment != kNoMoment) absl::StrAppend(&text, " ", task.moment);
    if (num_steps() > 1) absl::StrAppend(&text, " of step ", task.step);
    absl::StrAppend(&text, " on ", absl::StrJoin(task.devices, ","), ": ", TaskKindName(task.kind));
    if (task.is_view) absl::StrAppend(&text, " view");
    if (task.kind == TaskKind::kFill) absl::StrAppend(&text, " ", task.value);
    absl::StrAppend(&text, " ", graph.Label(task.node));
    if (task.segments > 1) absl::StrAppend(&text, " x", task.segments);
    absl::StrAppend(&text, " (", absl::StrJoin(task.reads, " ", buffers_text), ") -> (",
                    absl::StrJoin(written, " "), ")");
    for (const auto& [from, to] : task.transfers) absl::StrAppend(&text, " ", from, "->", to);
    absl::StrAppend(&text, "  # ", task.flops, " flops, ", task.bytes, " bytes\n");
  }
  return text;
}

}  // namespace isomer
