// What calls do otherwise when a model that trains is evaluated: Dropout lets all pass, and batch
// norms take running statistics in place of the batch's (PyTorch's model.eval()). Forward tasks of
// the schedule that trains are evaluated in their places, so weights are shared, whatever the plan.
//
// Of a plan whose steps rewrote the model this is still the model's evaluation form: rules hold for
// every rate, so also for 0, with which Dropout is the identity; and no rule looks into a batch
// norm.
#ifndef ISOMER_RUNTIME_EXECUTION_EVALUATION_CALLS_H_
#define ISOMER_RUNTIME_EXECUTION_EVALUATION_CALLS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "pcg/ir/graph.h"
#include "pcg/ir/plan.h"
#include "pcg/schedule/schedule.h"
#include "runtime/device/backend.h"
#include "runtime/execution/running_statistics.h"

namespace isomer {

struct EvaluationCall {
  KernelCall call;
  // batch_norm: whose running mean and variance are its operands 3 and 4.
  std::optional<RunningStatistics::Channels> statistics = std::nullopt;
};

// Of a forward task; nothing: it does what it does in training. REQUIRES: RunsKernel.
absl::StatusOr<std::optional<EvaluationCall>> EvaluationCallOf(
    const Graph& graph, const Schedule& schedule, absl::Span<const BatchStatistics> statistics,
    int32_t t);

// Names of batch norms that are evaluated with the statistics of the batch, as the model has no
// others: labels of nodes.
std::vector<std::string> WithoutStatistics(const Graph& graph,
                                           absl::Span<const BatchStatistics> statistics);

}  // namespace isomer

#endif  // ISOMER_RUNTIME_EXECUTION_EVALUATION_CALLS_H_
