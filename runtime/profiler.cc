#include "runtime/profiler.h"

#include <algorithm>
#include <chrono>
#include <map>
#include <memory>
#include <utility>

#include "pcg/support/status_macros.h"
#include "pcg/work.h"
#include "runtime/elements.h"
#include "runtime/statistics.h"

namespace isomer {
namespace {

using Buffer = std::vector<int64_t>;  // large enough for any data type, and aligned

// Floats around one, which no operator refuses; index 0.
Buffer MakeBuffer(int64_t elements, DataType dtype) {
  Buffer buffer(std::max<int64_t>(elements, 1), 0);
  if (IsFloat(dtype)) {
    std::vector<float> floats(elements);
    for (int64_t i = 0; i < elements; ++i) floats[i] = 0.75f + 0.03125f * (i % 16);
    StoreElements(floats.data(), elements, dtype, buffer.data());
  }
  return buffer;
}

// The buffers of one task, as Kernel::Run takes them.
struct TaskBuffers {
  std::vector<Buffer> owned;
  std::vector<const void*> reads;
  std::vector<void*> writes;

  void* Own(const Box& box, DataType dtype) {
    owned.push_back(MakeBuffer(box.Volume(), dtype));
    return owned.back().data();
  }
};

TaskBuffers BuffersOf(const KernelCall& call) {
  TaskBuffers buffers;
  for (size_t o = 0; o < call.operands.size(); ++o) {
    buffers.reads.push_back(buffers.Own(call.operands[o], call.dtypes[o]));
  }
  for (size_t t = 0; t < call.outputs.size(); ++t) {
    void* data = buffers.Own(call.outputs[t], call.output_dtypes[t]);
    (call.gradient ? buffers.reads.push_back(data) : buffers.writes.push_back(data));
  }
  if (!call.gradient) return buffers;
  for (size_t t = 0; t < call.outputs.size(); ++t) {
    buffers.reads.push_back(buffers.Own(call.outputs[t], call.output_dtypes[t]));
  }
  for (size_t o = 0; o < call.operands.size(); ++o) {
    buffers.writes.push_back(call.wanted[o] ? buffers.Own(call.operands[o], call.dtypes[o])
                                            : nullptr);
  }
  return buffers;
}

absl::StatusOr<KernelTime> Measure(const KernelCall& call, const ProfilerOptions& options,
                                   Backend* backend) {
  ISOMER_ASSIGN_OR_RETURN(const std::unique_ptr<Kernel> kernel, backend->MakeKernel(call));
  const TaskBuffers buffers = BuffersOf(call);
  std::vector<double> times;
  for (int i = 0; i < options.warm_up + options.repetitions; ++i) {
    const auto start = std::chrono::steady_clock::now();
    ISOMER_RETURN_IF_ERROR(kernel->Run(buffers.reads, buffers.writes));
    const std::chrono::duration<double, std::micro> time = std::chrono::steady_clock::now() - start;
    if (i >= options.warm_up) times.push_back(time.count());
  }
  const Spread spread = SpreadOf(times);
  return KernelTime{.median_us = spread.median,
                    .lower_us = spread.lower,
                    .upper_us = spread.upper,
                    .repetitions = options.repetitions};
}

}  // namespace

absl::StatusOr<std::vector<ProfiledCall>> CallsToProfile(const Graph& graph,
                                                         const std::vector<int64_t>& degrees) {
  std::map<std::string, ProfiledCall> calls;
  auto add = [&](const Operator& op, std::vector<TensorType> operands) {
    const std::string key = KernelKey(op, operands, {});
    calls.try_emplace(key, ProfiledCall{op, std::move(operands)});
  };
  for (NodeId id : graph.TopologicalOrder()) {
    const Node& node = graph.node(id);
    if (IsLeaf(node.op.kind()) || IsParallel(node.op.kind())) continue;
    std::vector<TensorType> operands;
    for (TensorRef input : node.inputs) operands.push_back(graph.type(input));
    add(node.op, operands);
    ISOMER_ASSIGN_OR_RETURN(const Sharding sharding, InferSharding(node.op, operands));
    for (size_t v = 0; v < sharding.degrees.size(); ++v) {
      for (int64_t degree : degrees) {
        std::vector<int64_t> partition(sharding.degrees.size(), 1);
        partition[v] = degree;
        auto parts = OperandTypesFor(node.op, operands, partition);
        // Otherwise the dim cannot be cut so.
        if (parts.ok() && InferSharding(node.op, *parts).ok()) add(node.op, *std::move(parts));
      }
    }
  }
  std::vector<ProfiledCall> list;
  for (auto& [key, call] : calls) list.push_back(std::move(call));
  return list;
}

absl::Status ProfileCall(const ProfiledCall& call, const ProfilerOptions& options, Backend* backend,
                         Profile* profile) {
  ISOMER_ASSIGN_OR_RETURN(const Sharding sharding, InferSharding(call.op, call.operands));
  std::vector<bool> wanted;
  for (const TensorType& operand : call.operands) {
    wanted.push_back(IsFloat(operand.dtype));
  }
  const bool differentiable = std::find(wanted.begin(), wanted.end(), true) != wanted.end();
  for (bool gradient : {false, true}) {
    if (gradient && !differentiable) continue;
    const KernelCall kernel = MakeKernelCall(call.op, sharding, call.operands, 0, gradient, wanted);
    ISOMER_ASSIGN_OR_RETURN(KernelTime time, Measure(kernel, options, backend));
    const Work work = gradient ? GradientWork(call.op, sharding, call.operands, wanted)
                               : ForwardWork(call.op, sharding, call.operands);
    time.flops = work.flops;
    time.bytes = work.bytes;
    time.family = KernelFamily(call.op.kind(), call.operands, gradient);
    profile->kernels[KernelKey(call.op, call.operands, gradient ? wanted : std::vector<bool>())] =
        time;
  }
  return absl::OkStatus();
}

}  // namespace isomer
