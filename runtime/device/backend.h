#ifndef ISOMER_RUNTIME_DEVICE_BACKEND_H_
#define ISOMER_RUNTIME_DEVICE_BACKEND_H_

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "pcg/evaluation/evaluator.h"
#include "pcg/ir/box.h"
#include "pcg/ir/operator.h"
#include "pcg/ir/type_inference.h"
#include "pcg/profile/profile.h"
#include "pcg/profile/work.h"
#include "pcg/schedule/layout.h"
#include "runtime/device/caches.h"
#include "runtime/device/communicator.h"
#include "runtime/device/device_operations.h"
#include "runtime/device/device_queues.h"

namespace isomer {

// One task of a call, forward or gradient, with everything a kernel depends on but the data.
struct KernelCall {
  Operator op;
  Declaration declaration;
  IterationBox iteration;        // the part of the iteration space
  std::vector<Box> operands;     // boxes of the logical operands that the task reads
  std::vector<DataType> dtypes;  // of the operands
  std::vector<Box> outputs;      // boxes of the logical outputs that it defines
  std::vector<DataType> output_dtypes;
  // Boxes are of the logical tensors, whatever the layouts of their buffers.
  CallLayouts layouts;
  bool gradient = false;
  std::vector<bool> wanted;  // gradient: which operands' gradients
  // Gradient: per operand, the type of its gradient's buffer, which may be of higher precision, and
  // whether the gradient is added to what is there. Empty: all are written, in the operands' types.
  struct Sum {
    DataType dtype;
    bool adds = false;
  };
  std::vector<Sum> sums = {};
  // What it leaves for its gradient, or the gradient finds; forward, absent: it is for none.
  std::optional<SavedForGradient> saved = std::nullopt;
  bool Adds(size_t operand) const { return !sums.empty() && sums[operand].adds; }
  // Of the gradient's buffer.
  DataType SumDtype(size_t operand) const {
    return sums.empty() ? dtypes[operand] : sums[operand].dtype;
  }

  // Equal keys, equal kernels: operator, data types, boxes, layouts, part of the iteration space,
  // gradient, sums, saving.
  std::string Key() const;
};

// The call of the task that computes shard `shard` of the outputs.
KernelCall MakeKernelCall(const Operator& op, const Sharding& sharding,
                          absl::Span<const TensorType> operands, int64_t shard, bool gradient,
                          std::vector<bool> wanted = {});

// What the task of `call` saves for its gradient, if it is asked to.
std::optional<SavedForGradient> SavedBy(const KernelCall& call);

// Of a gradient: which values of the forward pass it reads.
GradientNeeds NeedsOf(const KernelCall& call);

// A call made ready to run. Buffers are those of the schedule's task: forward reads operands and
// writes outputs, and what KernelCall::saved says; gradient reads operands, outputs, gradients of
// outputs (null where NeedsOfGradient does not ask for a value), what was saved, and writes
// gradients of operands (null where not wanted). Written buffers are overwritten, but for those
// that are added to. Of the call's data types and layouts; a gradient is of the type and the layout
// of what it is the gradient of, but for KernelCall::sums.
class Kernel {
 public:
  virtual ~Kernel() = default;
  // What it uses beside the buffers while it runs: so many bytes of the device's memory, aligned to
  // 64, of which it leaves nothing for the next run. 0: none, and null is given.
  virtual int64_t workspace_bytes() const { return 0; }
  virtual absl::Status Run(absl::Span<const void* const> reads, absl::Span<void* const> writes,
                           void* workspace) = 0;
};

// Memory and kernels of a kind of device. Methods are called from the threads of all devices.
class Backend {
 public:
  virtual ~Backend() = default;

  virtual absl::string_view name() const = 0;
  // What its devices are; and how much one has in caches, with so many at work.
  virtual absl::StatusOr<std::string> DeviceName() { return HostProcessor(); }
  virtual absl::StatusOr<CacheSizes> Caches(int64_t devices) { return CachesOfDevice(devices); }
  // What its kernels come from, with versions: times of another are another's.
  virtual std::string Libraries() const { return ""; }
  // Called once by each device's thread before anything else.
  virtual void EnterDevice(int32_t device, int32_t num_devices) = 0;
  // Aligned to 64 bytes, freed with the pointer. ResourceExhausted when there is not enough.
  using Memory = std::unique_ptr<char[], void (*)(char*)>;
  virtual absl::StatusOr<Memory> Allocate(int64_t bytes) = 0;
  // Memory of the host that the device reaches as it does its own. Devices that are cores have no
  // other.
  virtual absl::StatusOr<Memory> AllocateOnHost(int64_t bytes) { return Allocate(bytes); }
  virtual absl::StatusOr<std::unique_ptr<Kernel>> MakeKernel(const KernelCall& call) = 0;
  // What its devices do beside kernels.
  virtual DeviceOperations& operations();
  // Of the device of the thread that calls; null: it does at once what it is given. They end before
  // the backend.
  virtual absl::StatusOr<std::unique_ptr<DeviceQueues>> MakeQueues() { return nullptr; }
  // What carries tensors from this device to those of the other ranks; null: the host does. To be
  // called on all ranks, with the same groups, by their devices' threads. They, and the control
  // plane, end before the backend; a rank that waits longer than `timeout` for another is an error.
  virtual absl::StatusOr<std::unique_ptr<Communicator>> MakeCommunicator(
      ControlPlane* /*control*/, const CommunicationGroups& /*groups*/,
      std::chrono::milliseconds /*timeout*/) {
    return nullptr;
  }
};

}  // namespace isomer

#endif  // ISOMER_RUNTIME_DEVICE_BACKEND_H_
