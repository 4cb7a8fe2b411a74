// What moves take in a step, as the schedule makes them.
//
// Tables price a move by what links and receivers have to carry (reshard_cost.h). The schedule
// makes collectives of moves that are some, which take more or less. For a bound a move is lowered
// as in a step (pcg/schedule/lowering/redistribution.h), once for all tensors that are cut alike:
// which tasks it is does not depend on their size.
#ifndef ISOMER_OPTIMIZER_BOUND_MOVE_BOUND_H_
#define ISOMER_OPTIMIZER_BOUND_MOVE_BOUND_H_

#include <cstdint>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "optimizer/cost/cost.h"
#include "optimizer/mapping/move_pricer.h"
#include "optimizer/sharding/sharding_choice.h"
#include "pcg/schedule/schedule.h"

namespace isomer {

class MoveBounds {
 public:
  explicit MoveBounds(const CostModel& cost) : cost_(cost) {}

  struct Us {
    double anywhere = 0;  // until the last device has what it needs
    double first = 0;     // until the first one has
  };
  // REQUIRES: CanReshard(from.type, to.type); views without micro-batches.
  Us Of(const Placement& from, const Placement& to);

 private:
  // Of a tensor of one byte.
  struct MoveTask {
    TaskKind kind;
    std::vector<int32_t> devices;
    double bytes = 0;  // Task::bytes; kSendReceive: over the slowest link, in us
    double latency_us = 0;
    bool to_first = false;
  };

  std::vector<MoveTask> TasksOf(const MoveCuts& cuts) const;
  double UsOf(const MoveTask& task, double bytes) const;

  const CostModel& cost_;
  absl::flat_hash_map<MoveCuts, std::vector<MoveTask>> tasks_;
};

}  // namespace isomer

#endif  // ISOMER_OPTIMIZER_BOUND_MOVE_BOUND_H_
