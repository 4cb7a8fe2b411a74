// Whether a plan computes the same however its queues run: the runtime's own races, and what a
// program forgets to wait for, show themselves as other bits.
#ifndef ISOMER_RUNTIME_CHECKING_CHECK_EXECUTIONS_H_
#define ISOMER_RUNTIME_CHECKING_CHECK_EXECUTIONS_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "pcg/ir/graph.h"
#include "pcg/schedule/schedule.h"
#include "runtime/device/backend.h"
#include "runtime/execution/host_values.h"
#include "runtime/execution/job.h"

namespace isomer {

struct ExecutionsCheck {
  int64_t seeds = 0;    // of adversarial runs
  int64_t tensors = 0;  // that were compared, in each of the executions
  // What differs first, and where: "gradient of w1 in the adversarial run of seed 7"; "": nothing.
  std::string difference;
};

// Runs the schedule inline, threaded, and adversarially with seeds 1 to `seeds`, on virtual devices
// of this process: steps with these inputs, twice, so that what a step leaves behind meets the
// next. Compares outputs, trained parameters and, where they are kept, gradients, to the bit; and
// where they are found, the loss scale and the norm of gradients. Of `options` all counts but the
// execution and where devices are. Errors: of a run, with the execution's name.
absl::StatusOr<ExecutionsCheck> CheckExecutions(const Graph& graph, const Schedule& schedule,
                                                const HostValues& weights, const HostValues& inputs,
                                                double learning_rate, int64_t seeds,
                                                Backend* backend, const JobOptions& options = {});

}  // namespace isomer

#endif  // ISOMER_RUNTIME_CHECKING_CHECK_EXECUTIONS_H_
