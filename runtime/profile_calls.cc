#include "runtime/profile_calls.h"

#include <algorithm>
#include <utility>

#include "pcg/profile.h"
#include "pcg/schedule/views.h"
#include "pcg/support/status_macros.h"
#include "pcg/type_inference.h"

namespace isomer {
namespace {

// Cuts of up to `dims_left` dims from `first` on, as degrees.
void ForEachCut(size_t first, int dims_left, int64_t devices, std::vector<int64_t>* degrees,
                std::vector<std::vector<int64_t>>* cuts) {
  if (dims_left == 0) return;
  for (size_t dim = first; dim < degrees->size(); ++dim) {
    for (int64_t degree = 2; degree <= devices; ++degree) {
      if (devices % degree != 0) continue;
      (*degrees)[dim] = degree;
      cuts->push_back(*degrees);
      ForEachCut(dim + 1, dims_left - 1, devices / degree, degrees, cuts);
    }
    (*degrees)[dim] = 1;
  }
}

// What a device's tasks have touched, in bytes since it began: how far back a buffer's last use is.
class ReuseDistances {
 public:
  ReuseDistances(const Schedule& schedule, int64_t cache_bytes)
      : schedule_(schedule), holders_(HoldersOf(schedule)), cache_bytes_(cache_bytes) {}

  // Per buffer that the task reads, whether the caches have it.
  std::vector<bool> IsWarm(const Task& task) const {
    std::vector<bool> warm;
    for (BufferId id : task.reads) {
      const auto last = id == kNoBuffer ? last_.end() : last_.find(holders_[id]);
      warm.push_back(last != last_.end() && touched_ - last->second <= cache_bytes_);
    }
    return warm;
  }
  void Touch(const Task& task, int32_t device) {
    if (task.is_view) return;
    for (const auto* list : {&task.reads, &task.writes}) {
      for (BufferId id : *list) {
        if (id == kNoBuffer || schedule_.buffers[id].device != device) continue;
        touched_ += schedule_.buffers[id].bytes();
        last_[holders_[id]] = touched_;
      }
    }
  }

 private:
  const Schedule& schedule_;
  const std::vector<BufferId> holders_;
  const int64_t cache_bytes_;
  int64_t touched_ = 0;
  std::map<BufferId, int64_t> last_;
};

// Per task, what it finds warm.
std::vector<std::vector<bool>> WarmReads(const Schedule& schedule, int64_t cache_bytes) {
  std::vector<std::vector<bool>> warm(schedule.tasks.size());
  for (size_t d = 0; d < schedule.programs.size(); ++d) {
    ReuseDistances distances(schedule, cache_bytes);
    for (int32_t t : schedule.programs[d]) {
      const Task& task = schedule.tasks[t];
      if (task.phase == Phase::kLoad) continue;
      if (IsOfKernel(task.kind)) {
        warm[t] = distances.IsWarm(task);
      }
      distances.Touch(task, static_cast<int32_t>(d));
    }
  }
  return warm;
}

}  // namespace

void AddKernelsOf(const Graph& graph, const Schedule& schedule, int64_t cache_bytes,
                  ProfiledKernels* kernels) {
  const std::vector<std::vector<bool>> warm = WarmReads(schedule, cache_bytes);
  std::map<std::string, std::vector<int>> votes;  // warm reads less cold ones
  for (size_t t = 0; t < schedule.tasks.size(); ++t) {
    const Task& task = schedule.tasks[t];
    const bool gradient = task.kind == TaskKind::kComputeGradient;
    if (!IsOfKernel(task.kind) || task.is_view) continue;
    ProfiledKernel kernel;
    kernel.op = graph.node(task.node).op;
    for (TensorRef input : graph.node(task.node).inputs) {
      kernel.operands.push_back(graph.type(input));
    }
    for (BufferId id : task.writes) {
      if (gradient) kernel.wanted.push_back(id != kNoBuffer);
    }
    const std::string key = KernelKey(kernel.op, kernel.operands, kernel.wanted);
    std::vector<int>& vote = votes[key];
    vote.resize(warm[t].size());
    for (size_t i = 0; i < vote.size(); ++i) vote[i] += warm[t][i] ? 1 : -1;
    kernel.layouts = LayoutsOf(graph, schedule, task);
    kernels->try_emplace(key, std::move(kernel));
  }
  for (const auto& [key, vote] : votes) {
    std::vector<bool>& reads = kernels->at(key).warm;
    if (!reads.empty()) continue;  // Another plan has it, too.
    for (int v : vote) reads.push_back(v > 0);
  }
}

absl::Status AddShardsOf(int64_t num_devices, ProfiledKernels* kernels) {
  constexpr int kMostDims = 2;
  const ProfiledKernels whole = *kernels;
  for (const auto& [key, kernel] : whole) {
    ISOMER_ASSIGN_OR_RETURN(const Sharding sharding, InferSharding(kernel.op, kernel.operands));
    std::vector<int64_t> degrees(sharding.degrees.size(), 1);
    std::vector<std::vector<int64_t>> cuts;
    ForEachCut(0, kMostDims, num_devices, &degrees, &cuts);
    for (const std::vector<int64_t>& cut : cuts) {
      auto operands = OperandTypesFor(kernel.op, kernel.operands, cut);
      // Otherwise the dims cannot be cut so.
      if (!operands.ok() || !InferSharding(kernel.op, *operands).ok()) continue;
      std::string shard = KernelKey(kernel.op, *operands, kernel.wanted);
      kernels->try_emplace(std::move(shard),
                           ProfiledKernel{kernel.op, *std::move(operands), kernel.wanted,
                                          kernel.warm, kernel.layouts});
    }
  }
  return absl::OkStatus();
}

}  // namespace isomer
