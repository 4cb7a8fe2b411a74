#include "pcg/schedule/check_unloads.h"

#include <algorithm>
#include <vector>

namespace isomer {

absl::Status CheckUnloads(const Graph& graph, const Schedule& schedule) {
  std::vector<BufferId> expected, found;
  for (const Graph::NamedOutput& output : graph.outputs()) {
    const TensorType& type = graph.type(output.tensor);
    const std::vector<BufferId>& shards = schedule.shards.at(output.tensor);
    for (size_t s = 0; s < shards.size(); ++s) {
      if (static_cast<int64_t>(s) / type.partials % type.copies == 0) expected.push_back(shards[s]);
    }
  }
  const auto expect = [&](const std::vector<BufferId>& ids) {
    expected.insert(expected.end(), ids.begin(), ids.end());
  };
  for (const Schedule::HostTensor& parameter : schedule.parameters) {
    if (schedule.options.keep_gradients) expect(schedule.DistinctGradients(parameter));
    if (schedule.options.training) expect(schedule.DistinctStored(parameter));
  }
  for (const Task& task : schedule.tasks) {
    if (task.kind != TaskKind::kUnload) continue;
    found.insert(found.end(), task.reads.begin(), task.reads.end());
  }
  std::sort(expected.begin(), expected.end());
  std::sort(found.begin(), found.end());
  if (expected == found) return absl::OkStatus();
  return absl::FailedPreconditionError(
      "schedule: what is unloaded is not the outputs, parameters and gradients asked for");
}

}  // namespace isomer
