#include "runtime/device/memory_watch.h"

#include <algorithm>
#include <cstring>
#include <set>

#include "absl/strings/str_cat.h"
#include "pcg/schedule/memory/carries.h"
#include "pcg/schedule/memory/packing.h"

namespace isomer {
namespace {

// Every float of these bytes is NaN, every index negative.
constexpr int kDeadByte = 0xFF;

}  // namespace

MemoryWatch::MemoryWatch(const Schedule& schedule, const MemoryPlan& memory,
                         const std::vector<Command>& program, int32_t device, char* arena,
                         char* host_arena)
    : schedule_(schedule), program_(program), arena_(arena), host_arena_(host_arena) {
  std::memset(arena, kDeadByte, memory.arena_bytes[device]);
  std::memset(host_arena, kDeadByte, memory.host_bytes[device]);
  const std::vector<BufferId> first = FirstsOfMemory(schedule);
  std::vector<int32_t> group_of(schedule.buffers.size(), -1);
  const auto group = [&](BufferId id) -> int32_t {
    int32_t& of_first = group_of[first[id]];
    if (of_first < 0) {
      of_first = static_cast<int32_t>(groups_.size());
      groups_.push_back({memory.offsets[id], memory.offsets[id]});
    }
    return of_first;
  };
  for (size_t id = 0; id < schedule.buffers.size(); ++id) {
    const Buffer& buffer = schedule.buffers[id];
    if (buffer.device != device) continue;
    Group& of = groups_[group(static_cast<BufferId>(id))];
    of.begin = std::min(of.begin, memory.offsets[id]);
    of.end = std::max(of.end, memory.offsets[id] + buffer.bytes());
    of.on_host = IsOnHost(schedule, buffer);
    of.stays |= LivesThroughout(buffer.role);
  }
  for (int32_t t : schedule.programs[device]) {
    const Task& task = schedule.tasks[t];
    if (task.kind == TaskKind::kUnload) {
      for (BufferId id : task.reads) groups_[group(id)].stays = true;
    }
    if (!IsCarry(schedule, task)) continue;
    for (BufferId id : task.writes) {
      if (schedule.buffers[id].device == device) groups_[group(id)].stays = true;
    }
  }
  for (const Command& command : program) {
    const Task& task = schedule.tasks[command.task];
    std::set<int32_t> touched;
    for (const BufferList* list : {&task.reads, &task.writes}) {
      for (BufferId id : *list) {
        if (id != kNoBuffer && schedule.buffers[id].device == device) touched.insert(group(id));
      }
    }
    touched_.emplace_back(touched.begin(), touched.end());
    std::vector<ByteRange>& scratch = scratch_.emplace_back();
    const std::vector<int64_t> bytes = ScratchBytesOf(schedule, task);
    for (size_t m = 0; m < bytes.size(); ++m) {
      if (task.devices[m] != device || bytes[m] == 0) continue;
      const int64_t begin = memory.ScratchOffset(command.task, device);
      scratch.push_back({begin, begin + bytes[m]});
    }
  }
}

void MemoryWatch::Begin(const std::function<bool(int32_t place)>& selects) {
  uses_.Clear();
  for (Group& group : groups_) group.left = 0;
  for (size_t place = 0; place < program_.size(); ++place) {
    if (!selects(static_cast<int32_t>(place))) continue;
    for (int32_t group : touched_[place]) ++groups_[group].left;
  }
}

absl::Status MemoryWatch::Before(int32_t place, const QueueClock& over) {
  const Command& command = program_[place];
  const QueueClock after = uses_.Add(command.bytes, command.queue, place);
  for (int32_t q = 0; q < kMostQueues; ++q) {
    if (q == command.queue || after[q] <= over[q]) continue;
    const int32_t other = program_[after[q]].task;
    return absl::InternalError(absl::StrCat("touches bytes that task ", other, " (",
                                            TaskKindName(schedule_.tasks[other].kind),
                                            ") used, without waiting for it"));
  }
  return absl::OkStatus();
}

void MemoryWatch::After(int32_t place) {
  for (int32_t id : touched_[place]) {
    Group& group = groups_[id];
    if (--group.left > 0 || group.stays) continue;
    char* const arena = group.on_host ? host_arena_ : arena_;
    std::memset(arena + group.begin, kDeadByte, group.end - group.begin);
  }
  for (const ByteRange& range : scratch_[place]) {
    std::memset(arena_ + range.begin, kDeadByte, range.end - range.begin);
  }
}

}  // namespace isomer
