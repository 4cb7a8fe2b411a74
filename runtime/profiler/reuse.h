// Where the tasks of a step find what they read, and the memory that they write.
#ifndef ISOMER_RUNTIME_PROFILER_REUSE_H_
#define ISOMER_RUNTIME_PROFILER_REUSE_H_

#include <vector>

#include "pcg/ir/graph.h"
#include "pcg/schedule/schedule.h"
#include "runtime/device/caches.h"

namespace isomer {

// Per buffer that the task reads, and writes.
struct FoundByTask {
  std::vector<CacheLevel> reads, writes;
};
// Per task of one device, in a step that follows others; nothing for communications. A cache has
// what was touched last, as much as it holds: other bytes of the arena that were touched since,
// each counted once (the stack distance of Mattson et al., "Evaluation techniques for storage
// hierarchies", 1970). Where buffers take the place of others they find that in the cache, too.
// Of a table that is looked up, a few rows are touched, which are in memory.
std::vector<FoundByTask> FindInCaches(const Graph& graph, const Schedule& schedule,
                                      const CacheSizes& caches);
// Where updates find most of what they read; in memory, where there are none.
CacheLevel FoundByUpdates(const Schedule& schedule, const std::vector<FoundByTask>& found);

}  // namespace isomer

#endif  // ISOMER_RUNTIME_PROFILER_REUSE_H_
