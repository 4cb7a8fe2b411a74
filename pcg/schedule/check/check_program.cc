#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "pcg/schedule/program/program.h"
#include "pcg/support/status_macros.h"

namespace isomer {
namespace {

bool Conflict(const Accesses& a, const Accesses& b) {
  const auto meet = [](const auto& some, const auto& others) {
    return std::any_of(some.begin(), some.end(), [&](const ByteRange& one) {
      return std::any_of(others.begin(), others.end(),
                         [&](const ByteRange& other) { return Overlap(one, other); });
    });
  };
  return meet(a.writes, b.writes) || meet(a.writes, b.reads) || meet(a.reads, b.writes);
}

class ProgramChecker {
 public:
  ProgramChecker(const Schedule& schedule, const MemoryPlan& memory, const Program& program)
      : schedule_(schedule), accesses_(schedule, memory), program_(program) {}

  absl::Status Run() {
    if (program_.devices.size() != schedule_.programs.size()) {
      return absl::FailedPreconditionError(
          absl::StrCat("program: ", program_.devices.size(), " devices for the ",
                       schedule_.programs.size(), " of the schedule"));
    }
    if (program_.num_queues < 1) return absl::FailedPreconditionError("program: no queue");
    lists_.resize(program_.devices.size());
    for (size_t d = 0; d < lists_.size(); ++d) ISOMER_RETURN_IF_ERROR(CheckCommands(d));
    ISOMER_RETURN_IF_ERROR(RunToTheEnd());
    for (size_t d = 0; d < lists_.size(); ++d) ISOMER_RETURN_IF_ERROR(CheckOrder(d));
    return absl::OkStatus();
  }

 private:
  // Of a device: of each command, by place, its rank in the schedule and its place in its
  // queue; and by queue, how many commands of it are over for sure when it begins.
  struct DeviceList {
    std::vector<int32_t> rank, in_queue;
    std::vector<std::vector<int32_t>> over;
    std::vector<std::vector<int32_t>> queues;  // places
    std::vector<int32_t> place;                // per task; -1: not here
  };

  const Command& At(size_t d, int32_t place) const { return program_.devices[d][place]; }

  std::string Label(size_t d, int32_t place) const {
    const int32_t t = At(d, place).task;
    return absl::StrCat("task ", t, " (", TaskKindName(schedule_.tasks[t].kind), ")");
  }
  static absl::Status Error(size_t d, const std::string& what) {
    return absl::FailedPreconditionError(absl::StrCat("program: device ", d, ": ", what));
  }

  absl::Status CheckCommands(size_t d) {
    DeviceList& list = lists_[d];
    const int32_t num_tasks = static_cast<int32_t>(schedule_.tasks.size());
    const int32_t count = static_cast<int32_t>(program_.devices[d].size());
    list.place.assign(num_tasks, -1);
    list.queues.resize(program_.num_queues);
    for (int32_t place = 0; place < count; ++place) {
      const Command& command = At(d, place);
      if (command.task < 0 || command.task >= num_tasks) {
        return Error(d, absl::StrCat("no task ", command.task));
      }
      if (list.place[command.task] >= 0) return Error(d, Label(d, place) + " a second time");
      list.place[command.task] = place;
      if (command.queue < 0 || command.queue >= program_.num_queues) {
        return Error(d, absl::StrCat(Label(d, place), " on queue ", command.queue));
      }
      list.in_queue.push_back(static_cast<int32_t>(list.queues[command.queue].size()));
      list.queues[command.queue].push_back(place);
      for (int32_t other : command.waits) {
        if (other < 0 || other >= count || other == place) {
          return Error(d, absl::StrCat(Label(d, place), " waits for no command"));
        }
        if (!At(d, other).signals) {
          return Error(d, absl::StrCat(Label(d, place), " waits for ", Label(d, other),
                                       ", which does not signal"));
        }
      }
    }
    list.rank.assign(count, -1);
    int32_t rank = 0;
    for (int32_t t : schedule_.programs[d]) {
      const Task& task = schedule_.tasks[t];
      if (IsOfHost(task.kind) || task.is_view) continue;
      const int32_t place = list.place[t];
      if (place < 0) return Error(d, absl::StrCat("task ", t, " is left out"));
      list.rank[place] = rank++;
      const Accesses bytes = accesses_.Of(t, static_cast<int32_t>(d));
      if (bytes.reads != At(d, place).bytes.reads || bytes.writes != At(d, place).bytes.writes) {
        return Error(d, Label(d, place) + " touches other bytes than it says");
      }
    }
    if (rank != count) return Error(d, "commands of tasks that are not the device's");
    list.over.assign(count, std::vector<int32_t>(program_.num_queues, 0));
    return absl::OkStatus();
  }

  // Lets whatever can run do so, as if what runs took no time: which end does not depend on the
  // order.
  absl::Status RunToTheEnd() {
    std::vector<std::vector<size_t>> next(lists_.size(),
                                          std::vector<size_t>(program_.num_queues, 0));
    std::vector<std::vector<char>> over(lists_.size());
    for (size_t d = 0; d < lists_.size(); ++d) over[d].assign(program_.devices[d].size(), 0);
    const auto can_run = [&](size_t d, int32_t place) {
      const Command& command = At(d, place);
      if (next[d][command.queue] != static_cast<size_t>(lists_[d].in_queue[place])) return false;
      return std::all_of(command.waits.begin(), command.waits.end(),
                         [&](int32_t other) { return over[d][other] != 0; });
    };
    for (bool progress = true; progress;) {
      progress = false;
      for (size_t d = 0; d < lists_.size(); ++d) {
        for (int32_t q = 0; q < program_.num_queues; ++q) {
          while (next[d][q] < lists_[d].queues[q].size()) {
            const int32_t place = lists_[d].queues[q][next[d][q]];
            const Task& task = schedule_.tasks[At(d, place).task];
            const bool all =
                std::all_of(task.devices.begin(), task.devices.end(), [&](int32_t member) {
                  const int32_t there = lists_[member].place[At(d, place).task];
                  return there >= 0 && At(member, there).queue == q && can_run(member, there);
                });
            if (!all) break;
            for (int32_t member : task.devices) {
              const int32_t there = lists_[member].place[At(d, place).task];
              Begin(member, there);
              over[member][there] = 1;
              ++next[member][At(member, there).queue];
            }
            progress = true;
          }
        }
      }
    }
    for (size_t d = 0; d < lists_.size(); ++d) {
      for (int32_t q = 0; q < program_.num_queues; ++q) {
        if (next[d][q] == lists_[d].queues[q].size()) continue;
        return Error(d, Label(d, lists_[d].queues[q][next[d][q]]) + " never begins");
      }
    }
    return absl::OkStatus();
  }

  // What is over when the command begins: those before it on its queue, those that it waits
  // for, and what was when these began.
  void Begin(size_t d, int32_t place) {
    DeviceList& list = lists_[d];
    std::vector<int32_t>& over = list.over[place];
    const auto is_over = [&](int32_t other) {
      for (int32_t q = 0; q < program_.num_queues; ++q) {
        over[q] = std::max(over[q], list.over[other][q]);
      }
      int32_t& of_queue = over[At(d, other).queue];
      of_queue = std::max(of_queue, list.in_queue[other] + 1);
    };
    const int32_t before = list.in_queue[place] - 1;
    if (before >= 0) is_over(list.queues[At(d, place).queue][before]);
    for (int32_t other : At(d, place).waits) is_over(other);
  }

  bool IsBefore(size_t d, int32_t first, int32_t second) const {
    return lists_[d].over[second][At(d, first).queue] > lists_[d].in_queue[first];
  }

  absl::Status CheckOrder(size_t d) const {
    const DeviceList& list = lists_[d];
    for (int32_t p = 0; p < program_.num_queues; ++p) {
      for (int32_t q = 0; q < program_.num_queues; ++q) {
        if (p != q) ISOMER_RETURN_IF_ERROR(CheckSideBySide(d, list.queues[p], list.queues[q]));
      }
    }
    if (GoesForward(d)) return absl::OkStatus();
    const int32_t count = static_cast<int32_t>(list.rank.size());
    for (int32_t a = 0; a < count; ++a) {
      for (int32_t b = 0; b < count; ++b) {
        if (list.rank[a] < list.rank[b] || !IsBefore(d, a, b)) continue;
        if (!Conflict(At(d, a).bytes, At(d, b).bytes)) continue;
        return Error(d, absl::StrCat(Label(d, a), " comes before ", Label(d, b),
                                     ", behind which it belongs: they share bytes"));
      }
    }
    return absl::OkStatus();
  }

  // Whether queues and waits only ever go from what is earlier in the schedule to what is later, so
  // that what is before another is so there, too.
  bool GoesForward(size_t d) const {
    const DeviceList& list = lists_[d];
    for (const std::vector<int32_t>& queue : list.queues) {
      for (size_t i = 1; i < queue.size(); ++i) {
        if (list.rank[queue[i - 1]] > list.rank[queue[i]]) return false;
      }
    }
    for (size_t place = 0; place < list.rank.size(); ++place) {
      for (int32_t other : At(d, static_cast<int32_t>(place)).waits) {
        if (list.rank[other] > list.rank[place]) return false;
      }
    }
    return true;
  }

  // No command of the one shares a byte with one of the other beside which it may run: those
  // that are not known to be over when it begins, up to the first that begins when it is over.
  absl::Status CheckSideBySide(size_t d, const std::vector<int32_t>& ones,
                               const std::vector<int32_t>& others) const {
    if (others.empty()) return absl::OkStatus();
    const int32_t of_others = At(d, others[0]).queue;
    for (int32_t one : ones) {
      for (size_t i = lists_[d].over[one][of_others]; i < others.size(); ++i) {
        if (IsBefore(d, one, others[i])) break;
        if (!Conflict(At(d, one).bytes, At(d, others[i]).bytes)) continue;
        return Error(d, absl::StrCat(Label(d, one), " and ", Label(d, others[i]),
                                     " share bytes and may run at one time"));
      }
    }
    return absl::OkStatus();
  }

  const Schedule& schedule_;
  AccessTable accesses_;
  const Program& program_;
  std::vector<DeviceList> lists_;
};

}  // namespace

absl::Status CheckProgram(const Schedule& schedule, const MemoryPlan& memory,
                          const Program& program) {
  return ProgramChecker(schedule, memory, program).Run();
}

}  // namespace isomer
