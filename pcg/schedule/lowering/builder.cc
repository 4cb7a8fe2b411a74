#include "pcg/schedule/lowering/builder.h"

#include <algorithm>
#include <map>
#include <numeric>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "pcg/support/check.h"

namespace isomer {

ScheduleBuilder::ScheduleBuilder(const Graph& graph, absl::Span<const MachineView> views,
                                 const ScheduleOptions& options)
    : graph_(graph), views_(views), calls_(graph.num_nodes()) {
  schedule_.options = options;
  schedule_.shardings.resize(graph.num_nodes());
}

absl::StatusOr<std::vector<int64_t>> ScheduleBuilder::Devices(NodeId node) const {
  const MachineView& view = views_[node.value];
  const TensorType& type = graph_.node(node).outputs[0];
  absl::Status valid = ValidateView(view, type, options().num_devices);
  if (!valid.ok()) {
    return absl::InvalidArgumentError(absl::StrCat(graph_.Label(node), ": ", valid.message()));
  }
  return DevicesOf(view, type);
}

std::vector<int32_t> ScheduleBuilder::Moments(NodeId node) const {
  if (NumMomentsOf(node) == 1) return {};
  const std::vector<int64_t> moments = MomentsOf(views_[node.value], graph_.node(node).outputs[0]);
  return {moments.begin(), moments.end()};
}

BufferId ScheduleBuilder::AddBuffer(Buffer buffer) {
  schedule_.buffers.push_back(std::move(buffer));
  return static_cast<BufferId>(schedule_.buffers.size()) - 1;
}

BufferId ScheduleBuilder::AddShard(BufferRole role, TensorRef tensor, int64_t shard, int64_t device,
                                   int32_t moment) {
  const TensorType& type = graph_.type(tensor);
  return AddBuffer({.role = role,
                    .tensor = tensor,
                    .shard = static_cast<int32_t>(shard),
                    .device = static_cast<int32_t>(device),
                    .dtype = type.dtype,
                    .box = ShardBox(type, CoordinatesOfShard(type, shard).dims),
                    .moment = moment});
}

BufferId ScheduleBuilder::AddGradientBuffer(BufferId like, int32_t moment) {
  Buffer gradient = buffer(like);
  gradient.role = BufferRole::kGradient;
  if (gradient.moment == kNoMoment) gradient.moment = moment;
  return AddBuffer(std::move(gradient));
}

BufferId ScheduleBuilder::Converted(BufferId id, DataType dtype, NodeId node) {
  if (buffer(id).dtype == dtype) return id;
  Buffer converted = buffer(id);
  converted.dtype = dtype;
  const BufferId to = AddBuffer(std::move(converted));
  Task& task = AddTask(TaskKind::kConvert, Phase::kBackward, node, buffer(id).device, {id}, {to});
  task.moment = buffer(id).moment;
  task.bytes = buffer(id).bytes() + buffer(to).bytes();
  return to;
}

void ScheduleBuilder::ShareBuffer(BufferId id, int32_t moment) {
  Buffer& shared = schedule_.buffers[id];
  if (shared.moment != moment) shared.moment = kNoMoment;
}

Task& ScheduleBuilder::AddTask(TaskKind kind, Phase phase, NodeId node, int32_t device,
                               BufferList reads, BufferList writes) {
  Task task{.kind = kind, .phase = phase, .node = node, .devices = {device}};
  task.reads = std::move(reads);
  task.writes = std::move(writes);
  for (const BufferList* list : {&task.reads, &task.writes}) {
    for (BufferId id : *list) task.bytes += id == kNoBuffer ? 0 : buffer(id).bytes();
  }
  schedule_.tasks.push_back(std::move(task));
  return schedule_.tasks.back();
}

std::vector<Transfer> TransfersOf(const Task& task) {
  std::vector<Transfer> transfers;
  for (const auto& [from, to] : task.transfers) {
    transfers.push_back({task.reads[from], task.writes[to]});
  }
  if (!transfers.empty()) return transfers;
  for (BufferId from : task.reads) {
    for (BufferId to : task.writes) transfers.push_back({from, to});
  }
  return transfers;
}

void ScheduleBuilder::AddTransfers(const std::vector<Transfer>& transfers, Phase phase,
                                   NodeId node) {
  std::map<int32_t, std::vector<Transfer>> moments;
  for (const Transfer& t : transfers) moments[buffer(t.to).moment].push_back(t);
  for (const auto& [moment, list] : moments) AddTransfersOfMoment(list, phase, node);
}

void ScheduleBuilder::AddTransfersOfMoment(const std::vector<Transfer>& transfers, Phase phase,
                                           NodeId node) {
  // Union-find over devices.
  std::vector<int32_t> root(options().num_devices);
  std::iota(root.begin(), root.end(), 0);
  auto find = [&root](int32_t device) {
    while (root[device] != device) device = root[device] = root[root[device]];
    return device;
  };
  for (const Transfer& t : transfers) {
    const int32_t a = find(buffer(t.from).device), b = find(buffer(t.to).device);
    root[std::max(a, b)] = std::min(a, b);
  }
  std::map<int32_t, std::vector<Transfer>> sets;
  for (const Transfer& t : transfers) sets[find(buffer(t.from).device)].push_back(t);
  for (const auto& [device, set] : sets) AddConnectedTransfers(set, phase, node);
}

void ScheduleBuilder::AddConnectedTransfers(const std::vector<Transfer>& transfers, Phase phase,
                                            NodeId node) {
  Task task{.kind = TaskKind::kLocal, .phase = phase, .node = node};
  task.moment = buffer(transfers[0].to).moment;
  // n buffers may exchange n * n transfers.
  absl::flat_hash_map<BufferId, int32_t> read_index, write_index;
  for (const Transfer& t : transfers) {
    if (read_index.try_emplace(t.from, 0).second) task.reads.push_back(t.from);
    if (write_index.try_emplace(t.to, 0).second) task.writes.push_back(t.to);
  }
  for (BufferList* list : {&task.reads, &task.writes}) {
    std::sort(list->begin(), list->end(), [this](BufferId a, BufferId b) {
      return std::make_pair(buffer(a).device, a) < std::make_pair(buffer(b).device, b);
    });
    auto& index = list == &task.reads ? read_index : write_index;
    for (size_t i = 0; i < list->size(); ++i) {
      index[(*list)[i]] = static_cast<int32_t>(i);
      task.devices.push_back(buffer((*list)[i]).device);
    }
  }
  std::sort(task.devices.begin(), task.devices.end());
  task.devices.erase(std::unique(task.devices.begin(), task.devices.end()), task.devices.end());
  if (task.devices.size() > 1) {
    task.kind = RecogniseCollective(schedule_.buffers, task.reads, task.writes, transfers.size());
  }
  int64_t crossing = 0, local = 0;
  if (task.kind == TaskKind::kLocal || task.kind == TaskKind::kSendReceive) {
    for (const Transfer& t : transfers) {
      const int64_t bytes = IntersectionVolume(buffer(t.from).box, buffer(t.to).box) *
                            BytesPerElement(buffer(t.to).dtype);
      (buffer(t.from).device == buffer(t.to).device ? local : crossing) += bytes;
      task.transfers.emplace_back(read_index[t.from], write_index[t.to]);
    }
  }
  switch (task.kind) {
    case TaskKind::kLocal:
      task.bytes = 2 * local;
      break;
    case TaskKind::kSendReceive:
      task.bytes = crossing;
      break;
    case TaskKind::kAllGather:
      task.bytes = buffer(task.writes[0]).bytes();
      break;
    default:
      task.bytes = buffer(task.reads[0]).bytes();
  }
  schedule_.tasks.push_back(std::move(task));
}

namespace {

bool AllEqual(const std::vector<Buffer>& buffers, absl::Span<const BufferId> ids) {
  return std::all_of(ids.begin(), ids.end(),
                     [&](BufferId id) { return buffers[id].box == buffers[ids[0]].box; });
}

// Equal volumes, no two overlap, together `volume`.
bool Tile(const std::vector<Buffer>& buffers, absl::Span<const BufferId> ids, int64_t volume) {
  for (size_t i = 0; i < ids.size(); ++i) {
    const Box& box = buffers[ids[i]].box;
    if (box.Volume() * static_cast<int64_t>(ids.size()) != volume) return false;
    for (size_t j = 0; j < i; ++j) {
      if (IntersectionVolume(box, buffers[ids[j]].box) > 0) return false;
    }
  }
  return true;
}

}  // namespace

TaskKind RecogniseCollective(const std::vector<Buffer>& buffers, absl::Span<const BufferId> reads,
                             absl::Span<const BufferId> writes, size_t num_transfers) {
  const size_t n = reads.size();
  if (writes.size() != n || num_transfers != n * n) return TaskKind::kSendReceive;
  for (size_t m = 0; m < n; ++m) {
    const int32_t device = buffers[reads[m]].device;
    if (buffers[writes[m]].device != device) return TaskKind::kSendReceive;
    if (m > 0 && buffers[reads[m - 1]].device == device) return TaskKind::kSendReceive;
  }
  const bool same_reads = AllEqual(buffers, reads), same_writes = AllEqual(buffers, writes);
  const Box &read = buffers[reads[0]].box, &written = buffers[writes[0]].box;
  if (same_reads && same_writes && read == written) return TaskKind::kAllReduce;
  if (same_reads && Tile(buffers, writes, read.Volume())) return TaskKind::kReduceScatter;
  if (same_writes && Tile(buffers, reads, written.Volume())) return TaskKind::kAllGather;
  const int64_t total = read.Volume() * static_cast<int64_t>(n);
  if (!Tile(buffers, reads, total) || !Tile(buffers, writes, total)) return TaskKind::kSendReceive;
  for (BufferId from : reads) {
    for (BufferId to : writes) {
      const int64_t volume = IntersectionVolume(buffers[from].box, buffers[to].box);
      if (volume * static_cast<int64_t>(n) != read.Volume()) return TaskKind::kSendReceive;
    }
  }
  return TaskKind::kAllToAll;
}

}  // namespace isomer
