// Times of resharding in a step, as the schedule makes it.
//
// Tables price resharding by the load of links and receivers (reshard_cost.h); the schedule turns
// it into collectives where possible, which take more or less. For a bound, resharding is lowered
// as in a step (pcg/schedule/lowering/redistribution.h), once for all tensors with the same
// sharding: the tasks do not depend on the size.
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
    double anywhere = 0;  // until the last device is done
    double first = 0;     // until the first device is done
  };
  // REQUIRES: CanReshard(from.type, to.type); views without micro-batches.
  Us Of(const Placement& from, const Placement& to);

 private:
  // A task of resharding a tensor of one byte.
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
