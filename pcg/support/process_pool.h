// Work in child processes, for what is not made for threads (Z3) or may crash.
#ifndef ISOMER_PCG_SUPPORT_PROCESS_POOL_H_
#define ISOMER_PCG_SUPPORT_PROCESS_POOL_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"

namespace isomer {

// Computes the result of item 0, 1, .., count - 1. Made once per process, in the process.
using ItemWorker = std::function<std::string(size_t item)>;

// Runs every item in one of `jobs` child processes, each taking the next item when it is done with
// one, and calls `done` in this process with each result as it comes, in any order. With jobs <= 1,
// everything is done in this process, in order.
// Children do not outlive this process. Errors: a process could not be started, or died; the error
// names the item that it died at.
// REQUIRES: no other thread runs.
absl::Status ForEachInProcesses(int jobs, size_t count, absl::FunctionRef<ItemWorker()> make_worker,
                                absl::FunctionRef<void(size_t item, std::string result)> done);

// What may be done to work that is not to be trusted to end well.
struct Isolation {
  double seconds_per_item = 0;  // a process that takes longer is ended; 0: no limit
  int64_t bytes = 0;            // of address space of a process, besides what there is; 0: no limit
};

// The same, always in child processes, with another in the place of one that dies or is ended;
// `died` is called with the item that it died at, and why.
absl::Status ForEachInIsolation(int jobs, const Isolation& isolation, size_t count,
                                absl::FunctionRef<ItemWorker()> make_worker,
                                absl::FunctionRef<void(size_t item, std::string result)> done,
                                absl::FunctionRef<void(size_t item, std::string why)> died);

}  // namespace isomer

#endif  // ISOMER_PCG_SUPPORT_PROCESS_POOL_H_
