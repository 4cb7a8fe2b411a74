#include "runtime/device/task_calls.h"

#include <utility>
#include <vector>

namespace isomer {

KernelCall CallOfTask(const Graph& graph, const Schedule& schedule, int32_t t) {
  const Task& task = schedule.tasks[t];
  const Node& node = graph.node(task.node);
  std::vector<TensorType> operands;
  for (TensorRef input : node.inputs) operands.push_back(graph.type(input));
  const bool gradient = task.kind == TaskKind::kComputeGradient;
  std::vector<bool> wanted;
  for (BufferId id : task.writes) {
    if (gradient) wanted.push_back(id != kNoBuffer);
  }
  KernelCall call = MakeKernelCall(node.op, *schedule.shardings[task.node.value], operands,
                                   task.shard, gradient, std::move(wanted));
  call.layouts = LayoutsOf(graph, schedule, task);
  if (!gradient && task.writes.size() > node.outputs.size()) call.saved = SavedBy(call);
  for (size_t o = 0; gradient && o < operands.size(); ++o) {
    if (task.writes[o] == kNoBuffer) continue;
    const DataType dtype = schedule.buffers[task.writes[o]].dtype;
    if (dtype == call.dtypes[o] && !Adds(task, o)) continue;
    if (call.sums.empty()) {
      for (DataType of_operand : call.dtypes) call.sums.push_back({of_operand});
    }
    call.sums[o] = {dtype, Adds(task, o)};
  }
  return call;
}

}  // namespace isomer
