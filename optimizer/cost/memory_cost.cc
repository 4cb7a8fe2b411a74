#include "optimizer/cost/memory_cost.h"

#include <algorithm>
#include <utility>

#include "optimizer/cost/workspace.h"

namespace isomer {
namespace {

// Memo of calls' workspaces.
class Workspaces {
 public:
  Workspaces(const Profile* profile, const Graph& graph, const Schedule& schedule, bool cores)
      : profile_(profile),
        graph_(graph),
        schedule_(schedule),
        cores_(cores),
        calls_(graph.num_nodes()) {}

  // REQUIRES: RunsKernel(task).
  KernelBytes Of(const Task& task) {
    const bool gradient = task.kind == TaskKind::kComputeGradient;
    const size_t wanted = gradient ? task.writes.size() : 0;
    std::vector<Call>& calls = calls_[task.node.value];
    const auto known = std::find_if(calls.begin(), calls.end(), [&](const Call& call) {
      if (call.wanted.size() != wanted) return false;
      for (size_t o = 0; o < wanted; ++o) {
        if (call.wanted[o] != (task.writes[o] != kNoBuffer)) return false;
      }
      return true;
    });
    if (known != calls.end()) return known->bytes;
    Call call;
    for (size_t o = 0; o < wanted; ++o) call.wanted.push_back(task.writes[o] != kNoBuffer);
    call.bytes = Look(task, call.wanted);
    calls.push_back(std::move(call));
    return calls.back().bytes;
  }

 private:
  struct Call {
    std::vector<bool> wanted;  // empty: forward
    KernelBytes bytes;
  };

  KernelBytes Look(const Task& task, const std::vector<bool>& wanted) const {
    const Node& node = graph_.node(task.node);
    if (profile_ != nullptr) {
      std::vector<TensorType> operands;
      for (TensorRef input : node.inputs) operands.push_back(graph_.type(input));
      const KernelTime* measured = profile_->Find(node.op, operands, wanted);
      if (measured != nullptr) return {measured->workspace_bytes, measured->library_bytes};
    }
    if (!cores_) return {};
    KernelBytes bytes = BytesOnCore(graph_, node, wanted, LayoutsOf(graph_, schedule_, task));
    bytes.workspace += WidenedBytes(graph_, schedule_, task);
    return bytes;
  }

  const Profile* profile_;
  const Graph& graph_;
  const Schedule& schedule_;
  const bool cores_;
  std::vector<std::vector<Call>> calls_;  // per node
};

}  // namespace

PredictedMemory PredictMemory(const Profile* profile, const Graph& graph, bool cores,
                              int32_t num_queues, Schedule* schedule) {
  std::vector<int64_t> library(schedule->programs.size(), 0);
  Workspaces workspaces(profile, graph, *schedule, cores);
  const bool is_known = profile != nullptr || cores;
  for (Task& task : schedule->tasks) {
    if (!is_known || !RunsKernel(task)) continue;
    const KernelBytes bytes = workspaces.Of(task);
    task.workspace_bytes = bytes.workspace + (cores ? SharesBesideSums(graph, *schedule, task) : 0);
    int64_t& most = library[task.devices[0]];
    most = std::max(most, bytes.library);
  }
  PredictedMemory memory;
  memory.plan = PlanMemory(*schedule, num_queues);
  for (size_t d = 0; d < library.size(); ++d) {
    memory.bytes_per_device.push_back(memory.plan.arena_bytes[d] + library[d]);
  }
  return memory;
}

}  // namespace isomer
