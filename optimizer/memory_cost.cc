#include "optimizer/memory_cost.h"

#include <algorithm>

#include "pcg/schedule/memory.h"

namespace isomer {
namespace {

int64_t WorkspaceOf(const Profile& profile, const Graph& graph, const Task& task) {
  const bool gradient = task.kind == TaskKind::kComputeGradient;
  if (task.kind != TaskKind::kCompute && !gradient) return 0;
  const Node& node = graph.node(task.node);
  std::vector<TensorType> operands;
  for (TensorRef input : node.inputs) operands.push_back(graph.type(input));
  std::vector<bool> wanted;
  for (BufferId id : task.writes) {
    if (gradient) wanted.push_back(id != kNoBuffer);
  }
  const KernelTime* measured = profile.Find(node.op, operands, wanted);
  return measured == nullptr ? 0 : measured->workspace_bytes;
}

}  // namespace

std::vector<int64_t> BytesPerDevice(const Profile* profile, const Graph& graph,
                                    const Schedule& schedule) {
  std::vector<int64_t> bytes = PlanMemory(schedule).arena_bytes;
  if (profile == nullptr) return bytes;
  std::vector<int64_t> workspace(bytes.size(), 0);
  for (const Task& task : schedule.tasks) {
    const int64_t own = WorkspaceOf(*profile, graph, task);
    for (int32_t device : task.devices) workspace[device] = std::max(workspace[device], own);
  }
  for (size_t d = 0; d < bytes.size(); ++d) bytes[d] += workspace[d];
  return bytes;
}

}  // namespace isomer
