#ifndef ISOMER_RUNTIME_EXECUTION_NOT_FINITE_H_
#define ISOMER_RUNTIME_EXECUTION_NOT_FINITE_H_

#include <string>

#include "absl/status/statusor.h"
#include "pcg/ir/graph.h"
#include "runtime/execution/host_values.h"
#include "runtime/execution/job.h"

namespace isomer {

// Of a training step whose loss is not finite: what else is not, of what it was given and of what
// it made. "input 'image' has nan in row 3", "weight 'conv1' and 7 more are not finite after it";
// empty: nothing. All processes call it.
absl::StatusOr<std::string> WhatIsNotFinite(const Graph& graph, const HostValues& inputs, Job* job);

}  // namespace isomer

#endif  // ISOMER_RUNTIME_EXECUTION_NOT_FINITE_H_
