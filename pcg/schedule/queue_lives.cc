#include "pcg/schedule/queue_lives.h"

#include <algorithm>

#include "absl/container/flat_hash_map.h"

namespace isomer {
namespace {

// The last tasks of each kind that are over for sure.
struct Over {
  int32_t computation = -1, communication = -1;
  void Include(const Over& other) {
    computation = std::max(computation, other.computation);
    communication = std::max(communication, other.communication);
  }
};

}  // namespace

std::vector<std::pair<int32_t, LiveRange>> CommunicationLives(const Schedule& schedule,
                                                              int32_t device) {
  const std::vector<int32_t>& program = schedule.programs[device];
  std::vector<std::pair<int32_t, LiveRange>> lives;
  size_t released = 0;                       // of lives
  absl::flat_hash_map<int32_t, Over> after;  // per task of this device
  Over computed, communicated;               // of the newest of each queue
  for (int32_t t : program) {
    const Task& task = schedule.tasks[t];
    Over before;
    for (int32_t dep : task.deps) {
      // Other devices' are reached by communications that are this one's, too.
      if (const auto known = after.find(dep); known != after.end()) before.Include(known->second);
    }
    if (IsCommunication(task.kind)) {
      before.Include(communicated);
      const int32_t previous =
          lives.size() < kMostAhead ? 0 : lives[lives.size() - kMostAhead].first;
      lives.push_back({t, {std::max(before.computation + 1, previous), -1}});
      before.communication = t;
      communicated = before;
    } else if (!task.is_view) {
      before.Include(computed);
      for (; released < lives.size() && lives[released].first <= before.communication; ++released) {
        lives[released].second.last = t - 1;
      }
      before.computation = t;
      computed = before;
    }
    after[t] = before;
  }
  for (; released < lives.size(); ++released) {
    lives[released].second.last = static_cast<int32_t>(schedule.tasks.size()) - 1;
  }
  return lives;
}

}  // namespace isomer
