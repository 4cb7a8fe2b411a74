// What tells collectives apart: one row for each, from which names, tasks, volumes and traffic
// follow.
#ifndef ISOMER_OPTIMIZER_COST_COLLECTIVE_TRAITS_H_
#define ISOMER_OPTIMIZER_COST_COLLECTIVE_TRAITS_H_

#include <cstdint>
#include <optional>

#include "absl/types/span.h"
#include "pcg/schedule/schedule.h"

namespace isomer {

enum class Collective : int8_t {
  kAllReduce,
  kReduceScatter,
  kAllGather,
  kAllToAll,
  kBroadcast,
  kReduce,
};

struct CollectiveTraits {
  Collective kind;
  const char* name;
  TaskKind task;
  // Over the group: an all-reduce is a reduce-scatter and an all-gather.
  int passes;
  // From or to one device: all bytes pass each link. A reduce costs what its dual does.
  bool is_rooted;
  bool reduces;  // what is sent is summed up
};

absl::Span<const CollectiveTraits> AllCollectives();
const CollectiveTraits& TraitsOf(Collective kind);
// Absent: no collective.
std::optional<Collective> CollectiveOf(TaskKind kind);

}  // namespace isomer

#endif  // ISOMER_OPTIMIZER_COST_COLLECTIVE_TRAITS_H_
