#include "runtime/profile_calls.h"

#include <algorithm>
#include <utility>

#include "pcg/profile.h"
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

}  // namespace

void AddKernelsOf(const Graph& graph, const Schedule& schedule, ProfiledKernels* kernels) {
  for (const Task& task : schedule.tasks) {
    const bool gradient = task.kind == TaskKind::kComputeGradient;
    if (task.kind != TaskKind::kCompute && !gradient) continue;
    ProfiledKernel kernel;
    kernel.op = graph.node(task.node).op;
    for (TensorRef input : graph.node(task.node).inputs) {
      kernel.operands.push_back(graph.type(input));
    }
    for (BufferId id : task.writes) {
      if (gradient) kernel.wanted.push_back(id != kNoBuffer);
    }
    std::string key = KernelKey(kernel.op, kernel.operands, kernel.wanted);
    kernels->try_emplace(std::move(key), std::move(kernel));
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
                           ProfiledKernel{kernel.op, *std::move(operands), kernel.wanted});
    }
  }
  return absl::OkStatus();
}

}  // namespace isomer
