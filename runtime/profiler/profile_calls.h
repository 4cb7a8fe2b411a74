// Which kernels a model's plans need.
#ifndef ISOMER_RUNTIME_PROFILER_PROFILE_CALLS_H_
#define ISOMER_RUNTIME_PROFILER_PROFILE_CALLS_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "pcg/ir/operator.h"
#include "pcg/ir/tensor_type.h"
#include "pcg/schedule/schedule.h"
#include "runtime/profiler/reuse.h"

namespace isomer {

// A kernel to be measured: one task of a call, forward if `wanted` is empty, else the gradients of
// those operands.
struct ProfiledKernel {
  Operator op;
  std::vector<TensorType> operands;
  std::vector<bool> wanted = {};
  // What its tasks find where, in a step; empty: all in memory.
  FoundByTask found = {};
  // Of a task of it.
  CallLayouts layouts = {};
};
using ProfiledKernels = std::map<std::string, ProfiledKernel>;  // by KernelKey

// Adds the kernels of a schedule's tasks, with what they find in the caches on average: what the
// task before wrote, but also the weights of an unrolled recurrent network, and all of a network
// that the last cache holds. `found`: FindInCaches; empty: all is in memory.
void AddKernelsOf(const Graph& graph, const Schedule& schedule,
                  const std::vector<FoundByTask>& found, ProfiledKernels* kernels);

// Adds, for every kernel there, those of tasks that own a part of the call: every way to cut one
// dim, or two at once, as the search does, whose product divides `num_devices`.
// Errors: a call that does not type-check.
absl::Status AddShardsOf(int64_t num_devices, ProfiledKernels* kernels);

}  // namespace isomer

#endif  // ISOMER_RUNTIME_PROFILER_PROFILE_CALLS_H_
