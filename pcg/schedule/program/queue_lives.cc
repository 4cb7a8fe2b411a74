#include "pcg/schedule/program/queue_lives.h"

#include <algorithm>
#include <array>

#include "absl/container/flat_hash_map.h"
#include "pcg/schedule/memory/byte_uses.h"
#include "pcg/schedule/program/program.h"

namespace isomer {
std::vector<std::pair<int32_t, LiveRange>> CommunicationLives(const Schedule& schedule,
                                                              int32_t device) {
  std::vector<std::pair<int32_t, LiveRange>> lives;
  // By queue: those of its communications, in lives; how many of them are released; and, as clocks
  // of tasks, what is over for sure when its newest task is.
  std::array<std::vector<size_t>, kMostQueues> of_queue;
  std::array<size_t, kMostQueues> released = {};
  std::array<QueueClock, kMostQueues> newest;
  newest.fill(kNothingOver);
  absl::flat_hash_map<int32_t, QueueClock> after;  // per task of this device
  for (int32_t t : schedule.programs[device]) {
    const Task& task = schedule.tasks[t];
    QueueClock before = kNothingOver;
    for (int32_t dep : task.deps) {
      // Other devices' are reached by communications that are this one's, too.
      if (const auto known = after.find(dep); known != after.end()) Advance(&before, known->second);
    }
    const int32_t queue = QueueOf(task, kMostQueues);
    if (IsCommunication(task.kind)) {
      Advance(&before, newest[queue]);
      std::vector<size_t>& communications = of_queue[queue];
      const int32_t previous =
          communications.size() < kMostAhead
              ? 0
              : lives[communications[communications.size() - kMostAhead]].first;
      // Who takes the bytes of one so far back waits for it, if it must.
      if (communications.size() >= kMostAhead) {
        const size_t over = communications.size() - kMostAhead;
        for (; released[queue] <= over; ++released[queue]) {
          lives[communications[released[queue]]].second.last = t - 1;
        }
      }
      communications.push_back(lives.size());
      lives.push_back({t, {std::max(before[kComputeQueue] + 1, previous), -1}});
      before[queue] = t;
      newest[queue] = before;
    } else if (!task.is_view) {
      Advance(&before, newest[queue]);
      // A copy to the host or from it holds up no computation that does not wait for it.
      for (size_t q = 0; q < of_queue.size() && !IsHostCopy(task.kind); ++q) {
        for (; released[q] < of_queue[q].size(); ++released[q]) {
          auto& [communication, live] = lives[of_queue[q][released[q]]];
          if (communication > before[q]) break;
          live.last = t - 1;
        }
      }
      before[queue] = t;
      newest[queue] = before;
    }
    after[t] = before;
  }
  for (auto& [communication, live] : lives) {
    if (live.last < 0) live.last = static_cast<int32_t>(schedule.tasks.size()) - 1;
  }
  return lives;
}

}  // namespace isomer
