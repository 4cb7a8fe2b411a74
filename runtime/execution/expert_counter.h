#ifndef ISOMER_RUNTIME_EXECUTION_EXPERT_COUNTER_H_
#define ISOMER_RUNTIME_EXECUTION_EXPERT_COUNTER_H_

#include <cstdint>
#include <map>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "pcg/ir/expert_room.h"
#include "pcg/ir/graph.h"
#include "pcg/profile/expert_loads.h"
#include "pcg/schedule/schedule.h"

namespace isomer {

// Counts how many tokens the experts of one device's routing calls get, and ends a run in which an
// expert gets more than it has room for, if the model assumes that none does
// (pcg/ir/expert_room.h). It looks at scores in the memory of the host. Of experts in groups it
// looks at which groups tokens choose, not within groups: rows that a group has no token for choose
// there as well.
class ExpertCounter {
 public:
  // REQUIRES: both outlive it. `imbalance`: that the model assumes; 0: what has no room is dropped.
  ExpertCounter(const Graph& graph, const Schedule& schedule, double imbalance)
      : graph_(graph), schedule_(schedule), imbalance_(imbalance) {}

  // If it sends tokens to experts.
  void AddTask(int32_t task);
  bool has(int32_t task) const { return tasks_.contains(task); }

  // `reads`: what the task's kernel read. `counts`: it is one of the run's tasks that are counted.
  absl::Status Look(int32_t task, absl::Span<const void* const> reads, bool counts);

  // What one part of a call's groups of tokens added up to: a node of the graph, where the part
  // begins in the scores, and the sums.
  struct Part {
    int32_t node = -1;
    std::vector<int64_t> begin = {};
    friend auto operator<=>(const Part&, const Part&) = default;
  };
  struct Sums {
    int64_t groups = 0, most = 0;
    std::vector<int64_t> tokens = {};  // by expert
  };
  // As numbers, to be sent.
  std::vector<int64_t> Counted() const;

 private:
  struct Call {
    Part part;
    ExpertRoom room;
    int64_t groups = 0;
  };

  const Graph& graph_;
  const Schedule& schedule_;
  const double imbalance_;
  std::map<int32_t, Call> tasks_;
  std::map<Part, Sums> sums_;
};

// The loads that all devices counted, by name of the call. Devices with copies of a part counted
// the same tokens, which are taken once.
std::vector<ExpertLoad> MergeCounted(const Graph& graph,
                                     absl::Span<const std::vector<int64_t>> of_devices);

}  // namespace isomer

#endif  // ISOMER_RUNTIME_EXECUTION_EXPERT_COUNTER_H_
