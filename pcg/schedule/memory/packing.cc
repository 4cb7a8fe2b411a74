#include "pcg/schedule/memory/packing.h"

#include <algorithm>

namespace isomer {

namespace {

// Whether the pieces piece_at(0), .., in order, are slices of `whole` along its first dim that is
// not 1; with `gaps`, some between them may be missing.
template <typename PieceAt>
bool AreSlices(const Box& whole, int64_t count, bool gaps, const PieceAt& piece_at) {
  size_t dim = 0;
  while (dim + 1 < whole.shape.size() && whole.shape[dim] == 1) ++dim;
  int64_t at = whole.origin.empty() ? 0 : whole.origin[dim];
  for (int64_t m = 0; m < count; ++m) {
    const Box piece = piece_at(m);
    if (gaps && !piece.shape.empty()) at = std::max(at, piece.origin[dim]);
    for (size_t i = 0; i < whole.shape.size(); ++i) {
      if (i == dim ? piece.origin[i] != at
                   : piece.origin[i] != whole.origin[i] || piece.shape[i] != whole.shape[i]) {
        return false;
      }
    }
    if (!whole.shape.empty()) at += piece.shape[dim];
  }
  return true;
}

}  // namespace

bool LieSideBySide(const Schedule& schedule, const Box& whole, const BufferId* pieces,
                   int64_t count, bool gaps) {
  return AreSlices(whole, count, gaps,
                   [&](int64_t m) { return schedule.buffers[pieces[m]].in_memory(); });
}

bool IsSentAsItLies(const Schedule& schedule, const Task& task, size_t i) {
  const Box from = schedule.buffers[task.reads[task.transfers[i].first]].in_memory();
  const Box to = schedule.buffers[task.writes[task.transfers[i].second]].in_memory();
  return LineOffset(Intersection(from, to), from) >= 0;
}

bool IsReceivedAsItLies(const Schedule& schedule, const Task& task, size_t i,
                        absl::Span<const int32_t> arrivals) {
  const auto& [read, write] = task.transfers[i];
  return arrivals[write] == 1 && schedule.CountOf(task, i).received == 1 &&
         Covers(schedule.buffers[task.reads[read]].box, schedule.buffers[task.writes[write]].box);
}

std::vector<int32_t> ArrivalsOf(const Task& task) {
  std::vector<int32_t> arrivals(task.writes.size(), 0);
  for (const auto& [read, write] : task.transfers) ++arrivals[write];
  return arrivals;
}

namespace {

// Each device of a collective packs as much.
PackBytes PackedByEach(const Schedule& schedule, const Task& task) {
  const int64_t members = static_cast<int64_t>(schedule.GroupOf(task).size());
  const bool bucket = task.segments > 1, gaps = task.whole >= 0;
  const auto lie = [&](const Box& whole, const BufferList& pieces) {
    return !bucket && LieSideBySide(schedule, whole, pieces.data(),
                                    static_cast<int64_t>(task.devices.size()), gaps);
  };
  switch (task.kind) {
    case TaskKind::kReduceScatter:
      return {lie(schedule.buffers[task.reads[0]].in_memory(), task.writes) ? 0 : task.bytes,
              bucket ? task.bytes / members : 0};
    case TaskKind::kAllGather:
      return {bucket ? task.bytes / members : 0,
              lie(schedule.buffers[task.writes[0]].in_memory(), task.reads) ? 0 : task.bytes};
    case TaskKind::kAllToAll: {
      // What a buffer has in common with those of the others, which lie as it does.
      const auto lie_parts = [&](BufferId of, const BufferList& others) {
        const Box whole = schedule.buffers[of].in_memory();
        return !bucket &&
               AreSlices(whole, static_cast<int64_t>(task.devices.size()), gaps, [&](int64_t m) {
                 const Buffer& other = schedule.buffers[others[m]];
                 return Intersection(whole, other.in_memory());
               });
      };
      return {lie_parts(task.reads[0], task.writes) ? 0 : task.bytes,
              lie_parts(task.writes[0], task.reads) ? 0 : task.bytes};
    }
    default:
      return {};
  }
}

// By each device of a send_receive.
std::vector<PackBytes> PackedTransfers(const Schedule& schedule, const Task& task) {
  std::vector<PackBytes> bytes(task.devices.size());
  // None for a device that is not there.
  const auto of = [&](int32_t device) -> PackBytes* {
    const auto at = std::lower_bound(task.devices.begin(), task.devices.end(), device);
    if (at == task.devices.end() || *at != device) return nullptr;
    return &bytes[at - task.devices.begin()];
  };
  const std::vector<int32_t> arrivals = ArrivalsOf(task);
  for (size_t i = 0; i < task.transfers.size(); ++i) {
    const Buffer& from = schedule.buffers[task.reads[task.transfers[i].first]];
    const Buffer& to = schedule.buffers[task.writes[task.transfers[i].second]];
    if (from.device == to.device) continue;
    const int64_t shared = IntersectionVolume(from.box, to.box) * BytesPerElement(from.dtype);
    const Schedule::Whole::Count count = schedule.CountOf(task, i);
    if (PackBytes* sender = of(from.device); sender && !IsSentAsItLies(schedule, task, i)) {
      sender->send += shared * count.sent;
    }
    if (PackBytes* receiver = of(to.device);
        receiver && !IsReceivedAsItLies(schedule, task, i, arrivals)) {
      receiver->receive += shared * count.received;
    }
  }
  return bytes;
}

}  // namespace

std::vector<PackBytes> PackBytesOf(const Schedule& schedule, const Task& task) {
  if (!IsCommunication(task.kind)) return {};
  if (task.kind == TaskKind::kSendReceive) return PackedTransfers(schedule, task);
  return std::vector<PackBytes>(task.devices.size(), PackedByEach(schedule, task));
}

PackBytes MostPacked(const Schedule& schedule, const Task& task) {
  if (task.kind != TaskKind::kSendReceive) return PackedByEach(schedule, task);
  PackBytes most;
  for (const PackBytes& bytes : PackedTransfers(schedule, task)) {
    most = {std::max(most.send, bytes.send), std::max(most.receive, bytes.receive)};
  }
  return most;
}

std::vector<int64_t> ScratchBytesOf(const Schedule& schedule, const Task& task) {
  if (!IsCommunication(task.kind)) return {task.workspace_bytes};
  std::vector<int64_t> bytes;
  for (const PackBytes& packed : PackBytesOf(schedule, task)) bytes.push_back(packed.total());
  return bytes;
}

}  // namespace isomer
