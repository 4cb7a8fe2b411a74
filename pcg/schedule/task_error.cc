#include "pcg/schedule/task_error.h"

#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"

namespace isomer {

absl::Status TaskError(const Graph& graph, const Schedule& schedule, int32_t t,
                       absl::string_view what, int32_t device) {
  const Task& task = schedule.tasks[t];
  const bool known = task.node.value >= 0 && task.node.value < graph.num_nodes();
  if (device < 0 && !task.devices.empty()) device = task.devices.front();
  std::string where;
  if (device >= 0 && device < static_cast<int64_t>(schedule.programs.size())) {
    const std::vector<int32_t>& program = schedule.programs[device];
    const auto at = std::find(program.begin(), program.end(), t);
    if (at != program.end()) {
      where = absl::StrCat("device ", device, ", instruction ", at - program.begin(), ": ");
    }
  }
  return absl::FailedPreconditionError(
      absl::StrCat("schedule: ", where, "task ", t, " (", TaskKindName(task.kind), " of ",
                   known ? graph.Label(task.node) : "an unknown node", "): ", what));
}

}  // namespace isomer
