#include "pcg/schedule/program/program.h"

#include <algorithm>
#include <array>

#include "absl/strings/str_cat.h"
#include "pcg/schedule/memory/packing.h"
#include "pcg/schedule/program/access_uses.h"

namespace isomer {
namespace {

// Whether its buffers are summed or sent as one, from the first byte to the last.
bool TravelsAsRow(TaskKind kind) {
  return kind == TaskKind::kAllReduce || kind == TaskKind::kReduce || kind == TaskKind::kBroadcast;
}

// The commands of one device.
class Compiler {
 public:
  Compiler(const Schedule& schedule, AccessTable* accesses, int32_t num_queues, int32_t device)
      : schedule_(schedule), accesses_(*accesses), num_queues_(num_queues), device_(device) {
    newest_.fill(kNothingOver);
  }

  std::vector<Command> Run() {
    for (int32_t t : schedule_.programs[device_]) {
      const Task& task = schedule_.tasks[t];
      if (!IsOfHost(task.kind) && !task.is_view) Add(t);
    }
    for (size_t i = 0; i < commands_.size(); ++i) {
      for (int32_t other : commands_[i].waits) commands_[other].signals = true;
    }
    return std::move(commands_);
  }

 private:
  void Add(int32_t t) {
    const int32_t place = static_cast<int32_t>(commands_.size());
    Command command = {.task = t};
    command.queue = QueueOf(schedule_.tasks[t], num_queues_);
    command.bytes = accesses_.Of(t, device_);
    const int32_t queue = command.queue;
    const QueueClock after = uses_.Add(command.bytes, queue, place);
    // Where its queue stands, and what it knows of others.
    QueueClock known = newest_[queue];
    for (int32_t other = 0; other < num_queues_; ++other) {
      if (other == queue || after[other] <= known[other]) continue;
      command.waits.push_back(after[other]);
      Advance(&known, clocks_[after[other]]);
    }
    std::sort(command.waits.begin(), command.waits.end());
    known[queue] = place;
    clocks_.push_back(known);
    newest_[queue] = known;
    commands_.push_back(std::move(command));
  }

  const Schedule& schedule_;
  AccessTable& accesses_;
  const int32_t num_queues_, device_;
  std::vector<Command> commands_;
  std::vector<QueueClock> clocks_;              // per command: what is over when it is
  std::array<QueueClock, kMostQueues> newest_;  // per queue: of its last one
  AccessUses uses_;
};

}  // namespace

const char* QueueName(int32_t queue) {
  constexpr const char* kNames[kMostQueues] = {"compute",  "communication", "weights", "forward",
                                               "backward", "offload",       "fetch"};
  return kNames[queue];
}

int32_t QueueOf(const Task& task, int32_t num_queues) {
  if (num_queues == 1) return kComputeQueue;
  if (IsHostCopy(task.kind)) {
    return task.kind == TaskKind::kOffload ? kOffloadQueue : kFetchQueue;
  }
  if (!IsCommunication(task.kind)) return kComputeQueue;
  if (task.of_weights) return kWeightsQueue;
  if (task.kind != TaskKind::kSendReceive || task.moment == kNoMoment) return kCommunicationQueue;
  return task.phase == Phase::kForward ? kForwardQueue : kBackwardQueue;
}

std::vector<Accesses> AccessesOf(const Schedule& schedule, const MemoryPlan& memory, int32_t t) {
  const Task& task = schedule.tasks[t];
  std::vector<Accesses> accesses(task.devices.size());
  if (task.is_view) return accesses;
  const bool in_a_row = TravelsAsRow(task.kind);
  const auto place_of = [&](int32_t device) -> size_t {
    return std::lower_bound(task.devices.begin(), task.devices.end(), device) -
           task.devices.begin();
  };
  const auto add = [&](const BufferList& ids, SmallList<ByteRange, 3> Accesses::*list) {
    size_t last = accesses.size();  // whose row it is
    for (BufferId id : ids) {
      if (id == kNoBuffer) continue;
      const Buffer& buffer = schedule.buffers[id];
      const int64_t begin = memory.offsets[id], end = begin + buffer.bytes();
      const size_t place = place_of(buffer.device);
      if (begin == end || place == accesses.size() || task.devices[place] != buffer.device)
        continue;
      SmallList<ByteRange, 3>& ranges = accesses[place].*list;
      if (in_a_row && place == last) {
        ranges.back().end = std::max(ranges.back().end, end);
      } else {
        ranges.push_back({begin, end, IsOnHost(schedule, buffer)});
      }
      last = place;
    }
  };
  add(task.reads, &Accesses::reads);
  add(task.writes, &Accesses::writes);
  const std::vector<int64_t> scratch = ScratchBytesOf(schedule, task);
  for (size_t m = 0; m < scratch.size(); ++m) {
    if (scratch[m] == 0) continue;
    const int64_t begin = memory.ScratchOffset(t, task.devices[m]);
    accesses[m].writes.push_back({begin, begin + scratch[m], false});
  }
  return accesses;
}

Accesses AccessTable::Of(int32_t t, int32_t device) {
  const auto& devices = schedule_.tasks[t].devices;
  if (devices.size() == 1) return std::move(AccessesOf(schedule_, memory_, t)[0]);
  std::vector<Accesses>& all = of_communications_[t];
  if (all.empty()) all = AccessesOf(schedule_, memory_, t);
  return all[std::lower_bound(devices.begin(), devices.end(), device) - devices.begin()];
}

std::vector<Command> CompileProgramOf(const Schedule& schedule, AccessTable* accesses,
                                      int32_t num_queues, int32_t device) {
  return Compiler(schedule, accesses, num_queues, device).Run();
}

Program CompileProgram(const Schedule& schedule, const MemoryPlan& memory, int32_t num_queues) {
  Program program;
  program.num_queues = num_queues;
  AccessTable accesses(schedule, memory);
  for (size_t d = 0; d < schedule.programs.size(); ++d) {
    program.devices.push_back(
        CompileProgramOf(schedule, &accesses, num_queues, static_cast<int32_t>(d)));
  }
  return program;
}

std::string Program::ToString(const Graph& graph, const Schedule& schedule) const {
  std::string text;
  const auto append = [&text](const char* word, const SmallList<ByteRange, 3>& ranges) {
    if (ranges.empty()) return;
    absl::StrAppend(&text, " ", word);
    for (const ByteRange& range : ranges) {
      absl::StrAppend(&text, " ", range.on_host ? "host:" : "", range.begin, "+",
                      range.end - range.begin);
    }
  };
  for (size_t d = 0; d < devices.size(); ++d) {
    absl::StrAppend(&text, "device ", d, "\n");
    for (size_t i = 0; i < devices[d].size(); ++i) {
      const Command& command = devices[d][i];
      const Task& task = schedule.tasks[command.task];
      absl::StrAppend(&text, "  ", i, num_queues == 1 ? "" : " ",
                      num_queues == 1 ? "" : QueueName(command.queue), ": task ", command.task, " ",
                      TaskKindName(task.kind), " ", graph.Label(task.node));
      append("reads", command.bytes.reads);
      append("writes", command.bytes.writes);
      for (int32_t other : command.waits) absl::StrAppend(&text, " waits for ", other);
      absl::StrAppend(&text, command.signals ? " signals\n" : "\n");
    }
  }
  return text;
}

}  // namespace isomer
