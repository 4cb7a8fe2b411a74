#include "optimizer/memory_cost.h"

#include <algorithm>
#include <utility>

#include "optimizer/workspace.h"

namespace isomer {
namespace {

// The workspaces of calls, each looked up once.
class Workspaces {
 public:
  Workspaces(const Profile* profile, const Graph& graph, const Schedule& schedule, bool cores)
      : profile_(profile),
        graph_(graph),
        schedule_(schedule),
        cores_(cores),
        calls_(graph.num_nodes()) {}

  int64_t Of(const Task& task) {
    const bool gradient = task.kind == TaskKind::kComputeGradient;
    if (!IsOfKernel(task.kind) || task.is_view) return 0;
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
    std::vector<bool> wanted;  // none: forward
    int64_t bytes = 0;
  };

  int64_t Look(const Task& task, const std::vector<bool>& wanted) const {
    const Node& node = graph_.node(task.node);
    if (profile_ != nullptr) {
      std::vector<TensorType> operands;
      for (TensorRef input : node.inputs) operands.push_back(graph_.type(input));
      const KernelTime* measured = profile_->Find(node.op, operands, wanted);
      if (measured != nullptr) return measured->workspace_bytes;
    }
    if (!cores_) return 0;
    return WorkspaceOnCore(graph_, node, wanted, LayoutsOf(graph_, schedule_, task));
  }

  const Profile* profile_;
  const Graph& graph_;
  const Schedule& schedule_;
  const bool cores_;
  std::vector<std::vector<Call>> calls_;  // per node
};

}  // namespace

void SetWorkspaces(const Profile* profile, const Graph& graph, bool cores, Schedule* schedule) {
  if (profile == nullptr && !cores) return;
  Workspaces workspaces(profile, graph, *schedule, cores);
  for (Task& task : schedule->tasks) {
    task.workspace_bytes =
        workspaces.Of(task) + (cores ? SharesBesideSums(graph, *schedule, task) : 0);
  }
}

}  // namespace isomer
