#include "verifier/mutation/program_run.h"

#include <algorithm>
#include <array>
#include <map>
#include <vector>

#include "absl/strings/str_cat.h"
#include "pcg/schedule/memory/carries.h"
#include "pcg/support/hash.h"
#include "pcg/support/status_macros.h"

namespace isomer {
namespace {

// What memory holds: stretches of bytes, by their first. Byte `begin + i` of a stretch is the
// `first + i`-th of what is named.
class NamedMemory {
 public:
  void Write(const ByteRange& range, uint64_t name) {
    Cut(range.begin);
    Cut(range.end);
    stretches_.erase(stretches_.lower_bound(range.begin), stretches_.lower_bound(range.end));
    stretches_[range.begin] = {range.end, name, 0};
  }

  // Of what lies there: names, and which of their bytes.
  uint64_t Read(const ByteRange& range) {
    Cut(range.begin);
    Cut(range.end);
    uint64_t hash = static_cast<uint64_t>(range.end - range.begin);
    int64_t at = range.begin;
    Stretch whole = {};  // what was read last, as long as it goes on
    int64_t length = 0;
    const auto flush = [&] {
      if (length > 0) {
        hash = HashCombine(HashCombine(HashCombine(hash, whole.name), whole.first), length);
      }
      length = 0;
    };
    for (auto piece = stretches_.lower_bound(range.begin); at < range.end;) {
      const bool named = piece != stretches_.end() && piece->first == at;
      const int64_t end = named                       ? piece->second.end
                          : piece == stretches_.end() ? range.end
                                                      : std::min(range.end, piece->first);
      const Stretch next = named ? piece->second : Stretch{end, 0, 0};
      if (length == 0 || next.name != whole.name || next.first != whole.first + length) {
        flush();
        whole = next;
      }
      length += end - at;
      at = end;
      if (named) ++piece;
    }
    flush();
    return hash;
  }

 private:
  struct Stretch {
    int64_t end = 0;
    uint64_t name = 0;
    int64_t first = 0;
  };

  void Cut(int64_t at) {
    const auto next = stretches_.lower_bound(at);
    if (next == stretches_.begin()) return;
    auto& [begin, before] = *std::prev(next);
    if (before.end <= at) return;
    stretches_.emplace_hint(next, at, Stretch{before.end, before.name, before.first + at - begin});
    before.end = at;
  }

  std::map<int64_t, Stretch> stretches_;
};

class NameRun {
 public:
  NameRun(const Schedule& schedule, const MemoryPlan& memory, const Program& program, uint64_t seed)
      : schedule_(schedule),
        memory_(memory),
        program_(program),
        state_(seed),
        devices_(program.devices.size()),
        over_(program.devices.size()),
        next_(program.devices.size(), std::vector<size_t>(program.num_queues, 0)),
        queues_(program.devices.size(), std::vector<std::vector<int32_t>>(program.num_queues)) {
    for (size_t d = 0; d < devices_.size(); ++d) {
      over_[d].assign(program.devices[d].size(), false);
      for (size_t place = 0; place < program.devices[d].size(); ++place) {
        queues_[d][program.devices[d][place].queue].push_back(static_cast<int32_t>(place));
      }
    }
    for (size_t id = 0; id < schedule.buffers.size(); ++id) {
      const BufferRole role = schedule.buffers[id].role;
      if (LivesThroughout(role) || role == BufferRole::kInput) {
        MemoryOf(schedule.buffers[id]).Write(RangeOf(static_cast<BufferId>(id)), HashMix(id + 1));
      }
    }
  }

  absl::StatusOr<ReadNames> All() {
    while (true) {
      std::vector<int32_t> ready;  // tasks
      bool left = false;
      for (size_t d = 0; d < devices_.size(); ++d) {
        for (int32_t q = 0; q < program_.num_queues; ++q) {
          if (next_[d][q] == queues_[d][q].size()) continue;
          left = true;
          const int32_t t = program_.devices[d][queues_[d][q][next_[d][q]]].task;
          const auto& members = schedule_.tasks[t].devices;
          const bool all = std::all_of(members.begin(), members.end(),
                                       [&](int32_t member) { return HeadOf(member, t) >= 0; });
          if (all && members[0] == static_cast<int32_t>(d)) ready.push_back(t);
        }
      }
      if (!left) break;
      if (ready.empty()) return absl::FailedPreconditionError("deadlock");
      Run(ready[(state_ = HashMix(state_)) % ready.size()]);
    }
    // What the next step finds of states; other inputs are fed anew.
    for (const Task& task : schedule_.tasks) {
      if (!IsCarry(schedule_, task)) continue;
      for (BufferId id : task.writes) {
        const Buffer& buffer = schedule_.buffers[id];
        Note(buffer.device, kAtTheEnd, MemoryOf(buffer).Read(RangeOf(id)));
      }
    }
    for (size_t d = 0; d < devices_.size(); ++d) {
      for (int32_t t : schedule_.programs[d]) {
        const Task& task = schedule_.tasks[t];
        if (task.kind != TaskKind::kUnload) continue;
        for (BufferId id : task.reads) {
          Note(static_cast<int32_t>(d), t, MemoryOf(schedule_.buffers[id]).Read(RangeOf(id)));
        }
      }
    }
    return std::move(names_);
  }

 private:
  static constexpr int32_t kAtTheEnd = -1;  // no task

  ByteRange RangeOf(BufferId id) const {
    const Buffer& buffer = schedule_.buffers[id];
    return {memory_.offsets[id], memory_.offsets[id] + buffer.bytes(), IsOnHost(schedule_, buffer)};
  }
  NamedMemory& MemoryOf(const Buffer& buffer) {
    return devices_[buffer.device][IsOnHost(schedule_, buffer)];
  }
  void Note(int32_t device, int32_t task, uint64_t name) {
    uint64_t& noted = names_[{device, task}];
    noted = HashCombine(noted, name);
  }

  // The command of the task on a device, if it may begin; else -1.
  int32_t HeadOf(int32_t device, int32_t t) const {
    for (int32_t q = 0; q < program_.num_queues; ++q) {
      if (next_[device][q] == queues_[device][q].size()) continue;
      const int32_t place = queues_[device][q][next_[device][q]];
      const Command& command = program_.devices[device][place];
      if (command.task != t) continue;
      const bool waited =
          std::all_of(command.waits.begin(), command.waits.end(), [&](int32_t other) {
            return other >= 0 && other < static_cast<int32_t>(over_[device].size()) &&
                   over_[device][other];
          });
      return waited ? place : -1;
    }
    return -1;
  }

  void Run(int32_t t) {
    const auto& members = schedule_.tasks[t].devices;
    std::vector<int32_t> places;
    uint64_t all = HashMix(static_cast<uint64_t>(t) + 1);
    for (int32_t member : members) {
      const int32_t place = HeadOf(member, t);
      places.push_back(place);
      uint64_t here = 0;
      const Accesses& bytes = program_.devices[member][place].bytes;
      for (const ByteRange& range : bytes.reads) {
        here = HashCombine(here, devices_[member][range.on_host].Read(range));
      }
      // What others read and write, an update say, is in both lists.
      if (schedule_.tasks[t].kind == TaskKind::kAccumulate) {
        for (const ByteRange& range : bytes.writes) {
          here = HashCombine(here, devices_[member][range.on_host].Read(range));
        }
      }
      Note(member, t, here);
      all = HashCombine(all, here);
    }
    for (size_t m = 0; m < members.size(); ++m) {
      const Command& command = program_.devices[members[m]][places[m]];
      for (size_t w = 0; w < command.bytes.writes.size(); ++w) {
        const ByteRange& range = command.bytes.writes[w];
        devices_[members[m]][range.on_host].Write(range, HashCombine(HashCombine(all, m), w));
      }
      over_[members[m]][places[m]] = true;
      ++next_[members[m]][command.queue];
    }
  }

  const Schedule& schedule_;
  const MemoryPlan& memory_;
  const Program& program_;
  uint64_t state_;
  std::vector<std::array<NamedMemory, 2>> devices_;  // of the device, and on the host
  std::vector<std::vector<bool>> over_;
  std::vector<std::vector<size_t>> next_;                  // by device and queue
  std::vector<std::vector<std::vector<int32_t>>> queues_;  // places
  ReadNames names_;
};

}  // namespace

absl::StatusOr<ReadNames> RunProgramOnNames(const Schedule& schedule, const MemoryPlan& memory,
                                            const Program& program, uint64_t seed) {
  return NameRun(schedule, memory, program, seed).All();
}

}  // namespace isomer
