#include "runtime/executor.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "pcg/support/check.h"
#include "pcg/support/status_macros.h"
#include "runtime/allocation_count.h"
#include "runtime/elements.h"
#include "runtime/moves.h"

namespace isomer {
namespace {

double Now() {
  return std::chrono::duration<double, std::micro>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

}  // namespace

Executor::Executor(const Graph& graph, const Schedule& schedule, const MemoryPlan& memory,
                   int32_t device, Backend* backend, Communicator* communicator)
    : graph_(graph),
      schedule_(schedule),
      memory_(memory),
      device_(device),
      backend_(*backend),
      communicator_(*communicator),
      arena_(nullptr, [](char*) {}) {}

template <typename Work>
absl::Status Executor::Measured(Work work) {
  ResetPeakAllocations();
  const int64_t before = ThreadAllocations().live;
  ISOMER_RETURN_IF_ERROR(work());
  const Allocations after = ThreadAllocations();
  passing_bytes_ = std::max(passing_bytes_, after.peak - std::max(before, after.live));
  kernel_bytes_ += after.live - before;
  return absl::OkStatus();
}

absl::Status Executor::Prepare(int32_t num_devices) {
  backend_.EnterDevice(device_, num_devices);
  ISOMER_ASSIGN_OR_RETURN(arena_, backend_.Allocate(memory_.arena_bytes[device_]));
  return Measured([this] { return MakeKernels(); });
}

absl::Status Executor::MakeKernels() {
  for (int32_t t : schedule_.programs[device_]) {
    const TaskKind kind = schedule_.tasks[t].kind;
    if (kind != TaskKind::kCompute && kind != TaskKind::kComputeGradient) continue;
    ISOMER_RETURN_IF_ERROR(MakeKernel(t));
  }
  return absl::OkStatus();
}

absl::Status Executor::MakeKernel(int32_t t) {
  const Task& task = schedule_.tasks[t];
  const Node& node = graph_.node(task.node);
  std::vector<TensorType> operands;
  for (TensorRef input : node.inputs) operands.push_back(graph_.type(input));
  const bool gradient = task.kind == TaskKind::kComputeGradient;
  std::vector<bool> wanted;
  for (BufferId id : task.writes) {
    if (gradient) wanted.push_back(id != kNoBuffer);
  }
  ISOMER_ASSIGN_OR_RETURN(kernels_[t], backend_.MakeKernel(MakeKernelCall(
                                           node.op, *schedule_.shardings[task.node.value], operands,
                                           task.shard, gradient, std::move(wanted))));
  return absl::OkStatus();
}

absl::Status Executor::Run(Phase first, Phase last, double learning_rate) {
  return Measured([&] { return RunTasks(first, last, learning_rate); });
}

absl::Status Executor::RunTasks(Phase first, Phase last, double learning_rate) {
  for (int32_t t : schedule_.programs[device_]) {
    const Task& task = schedule_.tasks[t];
    if (task.phase < first || task.phase > last) continue;
    const double start = trace_ ? Now() : 0;
    absl::Status status = RunTask(t, learning_rate);
    if (trace_) times_.push_back({t, start, Now()});
    if (status.ok()) continue;
    // A communication reports the error of the rank that failed first.
    if (IsCommunication(task.kind)) return status;
    return absl::Status(
        status.code(),
        absl::StrCat("device ", device_, ": ", graph_.Label(task.node), ": ", status.message()));
  }
  return absl::OkStatus();
}

absl::Status Executor::RunTask(int32_t t, double learning_rate) {
  const Task& task = schedule_.tasks[t];
  switch (task.kind) {
    case TaskKind::kLoad:
    case TaskKind::kFeed:
    case TaskKind::kUnload:
      return absl::OkStatus();  // The host's part.
    case TaskKind::kCompute:
    case TaskKind::kComputeGradient:
      return RunKernel(t);
    case TaskKind::kFill:
      FillElements(task.value, elements(task.writes[0]), buffer(task.writes[0]).dtype,
                   data(task.writes[0]));
      return absl::OkStatus();
    case TaskKind::kAccumulate:
      AddElements(buffer(task.writes[0]).dtype, data(task.reads[0]), elements(task.writes[0]),
                  data(task.writes[0]));
      return absl::OkStatus();
    case TaskKind::kUpdate:  // Gradients are those of the loss times the seed.
      AddScaledElements(buffer(task.reads[0]).dtype,
                        static_cast<float>(-learning_rate / schedule_.options.seed),
                        data(task.reads[1]), elements(task.reads[0]), data(task.reads[0]));
      return absl::OkStatus();
    case TaskKind::kLocal:
    case TaskKind::kSendReceive:
      return RunTransfers(task);
    case TaskKind::kAllReduce:
    case TaskKind::kReduceScatter:
    case TaskKind::kAllGather:
    case TaskKind::kAllToAll:
      return RunCollective(task);
  }
  return absl::InternalError("unknown task");
}

absl::Status Executor::RunKernel(int32_t t) {
  const Task& task = schedule_.tasks[t];
  std::vector<const void*> reads;
  std::vector<void*> writes;
  for (BufferId id : task.reads) reads.push_back(id == kNoBuffer ? nullptr : data(id));
  for (BufferId id : task.writes) writes.push_back(id == kNoBuffer ? nullptr : data(id));
  return kernels_.at(t)->Run(reads, writes);
}

// Pieces travel packed: piece m of a buffer is the box that it shares with member m's.
absl::Status Executor::RunCollective(const Task& task) {
  const size_t self =
      std::find(task.devices.begin(), task.devices.end(), device_) - task.devices.begin();
  const BufferId read = task.reads[self], written = task.writes[self];
  const Box &from = buffer(read).box, &to = buffer(written).box;
  const DataType dtype = buffer(read).dtype;
  const int64_t element = BytesPerElement(dtype);
  const int64_t members = static_cast<int64_t>(task.devices.size());

  if (task.kind == TaskKind::kAllReduce) {
    if (read != written) std::memcpy(data(written), data(read), buffer(read).bytes());
    return communicator_.AllReduce(task.devices, dtype, data(written), to.Volume());
  }
  const bool scatters = task.kind != TaskKind::kAllGather;
  const bool gathers = task.kind != TaskKind::kReduceScatter;
  const int64_t piece = (task.kind == TaskKind::kReduceScatter ? to.Volume() : from.Volume()) *
                        element / (task.kind == TaskKind::kAllToAll ? members : 1);
  const void* send = data(read);
  if (scatters) {
    packed_.resize(piece * members);
    for (int64_t m = 0; m < members; ++m) {
      const Box region = Intersection(from, buffer(task.writes[m]).box);
      CopyRegion(region, from, data(read), region, packed_.data() + m * piece, element);
    }
    send = packed_.data();
  }
  if (gathers) received_.resize(piece * members);
  switch (task.kind) {
    case TaskKind::kReduceScatter:
      return communicator_.ReduceScatter(task.devices, dtype, send, data(written), to.Volume());
    case TaskKind::kAllGather:
      ISOMER_RETURN_IF_ERROR(communicator_.AllGather(task.devices, send, received_.data(), piece));
      break;
    default:
      ISOMER_RETURN_IF_ERROR(communicator_.AllToAll(task.devices, send, received_.data(), piece));
  }
  for (int64_t m = 0; m < members; ++m) {
    const Box region = Intersection(buffer(task.reads[m]).box, to);
    CopyRegion(region, region, received_.data() + m * piece, to, data(written), element);
  }
  return absl::OkStatus();
}

// A buffer that receives is the sum of what arrives, in the order of the transfers.
absl::Status Executor::RunTransfers(const Task& task) {
  std::map<BufferId, std::vector<Piece>> arrivals;
  int64_t packed_bytes = 0, received_bytes = 0;
  auto region_of = [&](const std::pair<int32_t, int32_t>& transfer) {
    return Intersection(buffer(task.reads[transfer.first]).box,
                        buffer(task.writes[transfer.second]).box);
  };
  for (const auto& transfer : task.transfers) {
    const Buffer &from = buffer(task.reads[transfer.first]),
                 &to = buffer(task.writes[transfer.second]);
    const int64_t bytes = region_of(transfer).Volume() * BytesPerElement(from.dtype);
    if (from.device == to.device) continue;
    if (from.device == device_) packed_bytes += bytes;
    if (to.device == device_) received_bytes += bytes;
  }
  packed_.resize(packed_bytes);  // Once, so that pieces stay where they are.
  received_.resize(received_bytes);
  sends_.clear();
  receives_.clear();
  packed_bytes = received_bytes = 0;
  for (const auto& transfer : task.transfers) {
    const BufferId from = task.reads[transfer.first], to = task.writes[transfer.second];
    const Box region = region_of(transfer);
    const int64_t element = BytesPerElement(buffer(from).dtype);
    const int64_t bytes = region.Volume() * element;
    const bool mine = buffer(from).device == device_;
    if (mine && buffer(to).device == device_) {
      arrivals[to].push_back({region, buffer(from).box, data(from)});
    } else if (mine) {
      char* piece = packed_.data() + packed_bytes;
      CopyRegion(region, buffer(from).box, data(from), region, piece, element);
      sends_.push_back({buffer(to).device, piece, bytes});
      packed_bytes += bytes;
    } else if (buffer(to).device == device_) {
      char* piece = received_.data() + received_bytes;
      receives_.push_back({buffer(from).device, piece, bytes});
      arrivals[to].push_back({region, region, piece});
      received_bytes += bytes;
    }
  }
  if (task.kind == TaskKind::kSendReceive) {
    ISOMER_RETURN_IF_ERROR(communicator_.SendReceive(task.devices, sends_, receives_));
  }
  for (BufferId id : task.writes) {
    if (buffer(id).device != device_) continue;
    SumPieces(arrivals[id], buffer(id).box, buffer(id).dtype, data(id));
  }
  return absl::OkStatus();
}

}  // namespace isomer
