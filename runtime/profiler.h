#ifndef ISOMER_RUNTIME_PROFILER_H_
#define ISOMER_RUNTIME_PROFILER_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "pcg/graph.h"
#include "pcg/profile.h"
#include "runtime/backend.h"

namespace isomer {

struct ProfilerOptions {
  // Besides the calls as the graph has them, those that own 1/d of any one dim that can be
  // partitioned, for every d of these that divides it.
  std::vector<int64_t> degrees;
  int warm_up = 2;
  int repetitions = 10;
};

// A call whose kernels are to be measured.
struct ProfiledCall {
  Operator op;
  std::vector<TensorType> operands;
};
// The different calls of the graph, by kernel key.
absl::StatusOr<std::vector<ProfiledCall>> CallsToProfile(const Graph& graph,
                                                         const std::vector<int64_t>& degrees);

// Measures one task of the call, forward and, where it has one, gradient, alone on the calling
// thread, on made-up numbers; adds both to the profile.
absl::Status ProfileCall(const ProfiledCall& call, const ProfilerOptions& options, Backend* backend,
                         Profile* profile);

}  // namespace isomer

#endif  // ISOMER_RUNTIME_PROFILER_H_
