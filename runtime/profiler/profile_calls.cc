#include "runtime/profiler/profile_calls.h"

#include <algorithm>
#include <utility>

#include "pcg/ir/type_inference.h"
#include "pcg/profile/profile.h"
#include "pcg/support/status_macros.h"

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

// Adds up levels of one buffer, of several tasks.
class Levels {
 public:
  void Add(const std::vector<CacheLevel>& levels) {
    sums_.resize(levels.size(), 0);
    for (size_t i = 0; i < levels.size(); ++i) sums_[i] += static_cast<int>(levels[i]);
    ++count_;
  }
  // The mean, rounded.
  std::vector<CacheLevel> Mean() const {
    std::vector<CacheLevel> mean;
    for (int sum : sums_) {
      mean.push_back(static_cast<CacheLevel>((2 * sum + count_) / (2 * count_)));
    }
    return mean;
  }

 private:
  std::vector<int> sums_;
  int count_ = 0;
};

}  // namespace

void AddKernelsOf(const Graph& graph, const Schedule& schedule,
                  const std::vector<FoundByTask>& found, ProfiledKernels* kernels) {
  std::map<std::string, std::pair<Levels, Levels>> levels;  // of reads, writes
  for (size_t t = 0; t < schedule.tasks.size(); ++t) {
    const Task& task = schedule.tasks[t];
    const bool gradient = task.kind == TaskKind::kComputeGradient;
    if (!RunsKernel(task)) continue;
    ProfiledKernel kernel;
    kernel.op = graph.node(task.node).op;
    for (TensorRef input : graph.node(task.node).inputs) {
      kernel.operands.push_back(graph.type(input));
    }
    for (BufferId id : task.writes) {
      if (gradient) kernel.wanted.push_back(id != kNoBuffer);
    }
    const std::string key = KernelKey(kernel.op, kernel.operands, kernel.wanted);
    if (!found.empty()) {
      auto& [reads, writes] = levels[key];
      reads.Add(found[t].reads);
      writes.Add(found[t].writes);
    }
    kernel.layouts = LayoutsOf(graph, schedule, task);
    kernels->try_emplace(key, std::move(kernel));
  }
  for (const auto& [key, of] : levels) {
    FoundByTask& known = kernels->at(key).found;
    // Else another plan has it, too.
    if (known.reads.empty()) known = {of.first.Mean(), of.second.Mean()};
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
                                          kernel.found, kernel.layouts});
    }
  }
  return absl::OkStatus();
}

}  // namespace isomer
