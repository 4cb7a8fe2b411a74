#include "runtime/profiler/kernel_timer.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <ctime>
#include <utility>

#include "pcg/ir/operator_traits.h"
#include "pcg/profile/work.h"
#include "pcg/schedule/memory/memory.h"
#include "pcg/support/status_macros.h"
#include "runtime/device/allocation_count.h"
#include "runtime/device/elements.h"

namespace isomer {
namespace {

enum class Use { kRead, kWritten };

// A buffer of the task, in the order of Kernel::Run.
struct Slot {
  Use use;
  int64_t elements;  // 0: the kernel gets no such buffer
  DataType dtype;
  int64_t values = 0;  // of indices: how many they select from; 0: no index
};

int64_t BytesOfSlot(const Slot& slot) {
  return Aligned(slot.elements * BytesPerElement(slot.dtype));
}

int64_t ElementsOf(const Box& box) { return std::max<int64_t>(box.Volume(), 1); }

// Of a table: its rows (those of one batch); of matrices, how many. Other indices (classes,
// positions) are zero, which is always there.
int64_t SelectableValues(const ProfiledKernel& kernel, size_t operand) {
  const OperatorTraits& traits = TraitsOf(kernel.op.kind());
  if (static_cast<int>(operand) != traits.index_operand) return 0;
  switch (traits.index_domain) {
    case IndexDomain::kRows:
      return kernel.operands[0].dims[0].size;
    case IndexDomain::kMatrices:
      return kernel.operands[1].dims[0].size;
    case IndexDomain::kPlaces:
      return kernel.operands[0].dims.end()[-2].size;
    default:
      return 0;
  }
}

std::vector<Slot> SlotsOf(const ProfiledKernel& kernel, const KernelCall& call) {
  std::vector<Slot> slots;
  GradientNeeds needs;
  if (call.gradient) needs = NeedsOf(call);
  for (size_t o = 0; o < call.operands.size(); ++o) {
    const bool needed = !call.gradient || needs.operands[o];
    slots.push_back({.use = Use::kRead,
                     .elements = needed ? ElementsOf(call.operands[o]) : 0,
                     .dtype = call.dtypes[o],
                     .values = SelectableValues(kernel, o)});
  }
  for (size_t t = 0; t < call.outputs.size(); ++t) {
    const bool needed = !call.gradient || needs.outputs[t];
    slots.push_back({.use = call.gradient ? Use::kRead : Use::kWritten,
                     .elements = needed ? ElementsOf(call.outputs[t]) : 0,
                     .dtype = call.output_dtypes[t]});
  }
  if (!call.gradient) return slots;
  for (size_t t = 0; t < call.outputs.size(); ++t) {
    slots.push_back({Use::kRead, ElementsOf(call.outputs[t]), call.output_dtypes[t]});
  }
  if (call.saved) slots.push_back({Use::kRead, call.saved->elements, call.saved->dtype});
  for (size_t o = 0; o < call.operands.size(); ++o) {
    slots.push_back({.use = Use::kWritten,
                     .elements = call.wanted[o] ? ElementsOf(call.operands[o]) : 0,
                     .dtype = call.dtypes[o]});
  }
  return slots;
}

// Like activations: of both signs, without a pattern that a branch predictor learns. The sum of
// four uniform numbers in [-0.87, 0.87] is nearly normal, of variance one.
void FillSlot(const Slot& slot, bool positive, char* data) {
  const int64_t count = slot.elements;
  std::vector<float> numbers(count);
  uint64_t state = 1;
  for (int64_t i = 0; i < count; ++i) {
    state = state * 6364136223846793005u + 1442695040888963407u;  // Knuth's
    if (IsFloat(slot.dtype)) {
      float sum = 0;
      for (int part = 24; part < 64; part += 10) {
        sum += static_cast<float>(state >> part & 1023) * (1.732f / 1023) - 0.866f;
      }
      numbers[i] = positive ? 0.5f + std::abs(sum) : sum;
    } else if (slot.dtype == DataType::kBool) {
      numbers[i] = static_cast<float>(state >> 63);
    } else if (slot.values > 0) {
      numbers[i] = static_cast<float>((state >> 33) % static_cast<uint64_t>(slot.values));
    }
  }
  StoreElements(numbers.data(), count, slot.dtype, data);
}

absl::StatusOr<KernelCall> CallOf(const ProfiledKernel& kernel) {
  ISOMER_ASSIGN_OR_RETURN(const Sharding sharding, InferSharding(kernel.op, kernel.operands));
  KernelCall call = MakeKernelCall(kernel.op, sharding, kernel.operands, 0, !kernel.wanted.empty(),
                                   kernel.wanted);
  call.layouts = kernel.layouts;
  return call;
}

int64_t BytesOfSlots(const std::vector<Slot>& slots) {
  int64_t bytes = 0;
  for (const Slot& slot : slots) bytes += BytesOfSlot(slot);
  return bytes;
}

}  // namespace

double ThreadUs() {
  timespec time;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) * 1e6 + static_cast<double>(time.tv_nsec) / 1e3;
}

absl::StatusOr<int64_t> KernelTimer::BytesOf(const ProfiledKernel& kernel) {
  ISOMER_ASSIGN_OR_RETURN(const KernelCall call, CallOf(kernel));
  return BytesOfSlots(SlotsOf(kernel, call));
}

absl::StatusOr<std::unique_ptr<KernelTimer>> KernelTimer::Make(const ProfiledKernel& kernel,
                                                               Backend* backend, char* memory,
                                                               DeviceClock* clock) {
  ISOMER_ASSIGN_OR_RETURN(const KernelCall call, CallOf(kernel));
  const std::vector<Slot> slots = SlotsOf(kernel, call);
  std::unique_ptr<KernelTimer> timer(new KernelTimer());
  timer->clock_ = clock;
  DeviceOperations& operations = backend->operations();
  char* data = memory;
  for (const Slot& slot : slots) {
    char* buffer = slot.elements == 0 ? nullptr : data;
    const bool positive = TraitsOf(kernel.op.kind()).takes_positive_numbers;
    if (buffer != nullptr && operations.shares_host_memory()) {
      FillSlot(slot, positive, buffer);
    } else if (buffer != nullptr) {
      std::vector<int64_t> staged(BytesOfSlot(slot) / sizeof(int64_t) + 1);
      FillSlot(slot, positive, reinterpret_cast<char*>(staged.data()));
      ISOMER_RETURN_IF_ERROR(operations.FromHost(staged.data(), BytesOfSlot(slot), buffer));
    }
    const bool is_written = slot.use == Use::kWritten;
    auto& list = is_written ? kernel.found.writes : kernel.found.reads;
    const size_t place = is_written ? timer->writes_.size() : timer->reads_.size();
    if (buffer != nullptr) {
      timer->regions_.push_back({buffer, BytesOfSlot(slot), is_written,
                                 place < list.size() ? list[place] : CacheLevel::kMemory});
    }
    if (is_written) {
      timer->writes_.push_back(buffer);
    } else {
      timer->reads_.push_back(buffer);
    }
    data += BytesOfSlot(slot);
  }
  ResetPeakAllocations();
  const int64_t before = ThreadAllocations().live;
  ISOMER_ASSIGN_OR_RETURN(timer->kernel_, backend->MakeKernel(call));
  const int64_t made = ThreadAllocations().peak - before;
  ISOMER_ASSIGN_OR_RETURN(const Backend::Memory workspace,
                          backend->Allocate(timer->workspace_bytes()));
  const int64_t allocated = ThreadAllocations().live;
  ResetPeakAllocations();
  ISOMER_RETURN_IF_ERROR(timer->kernel_->Run(timer->reads_, timer->writes_, workspace.get()));
  timer->library_bytes_ = std::max(made, ThreadAllocations().peak - allocated);
  return timer;
}

absl::Status KernelTimer::SetCaches(CacheSweeper* sweeper) {
  if (clock_ != nullptr) {
    std::vector<DeviceClock::Region> near;
    for (const Region& region : regions_) {
      if (region.found != CacheLevel::kMemory) near.push_back({region.data, region.bytes});
    }
    return clock_->SetCaches(near);
  }
  const auto touch = [this](CacheLevel level) {
    for (const Region& region : regions_) {
      if (region.found == level) isomer::Touch(region.data, region.bytes, region.is_written);
    }
  };
  for (const Region& region : regions_) {
    if (region.found == CacheLevel::kMemory) sweeper->Evict(region.data, region.bytes);
  }
  touch(CacheLevel::kLast);
  sweeper->SweepNear();
  touch(CacheLevel::kNear);
  return absl::OkStatus();
}

absl::StatusOr<double> KernelTimer::RunUs() {
  if (clock_ != nullptr) {
    return clock_->TimeUs([this] { return kernel_->Run(reads_, writes_, workspace_); });
  }
  const double computed = ThreadUs();
  const auto start = std::chrono::steady_clock::now();
  ISOMER_RETURN_IF_ERROR(kernel_->Run(reads_, writes_, workspace_));
  const std::chrono::duration<double, std::micro> passed = std::chrono::steady_clock::now() - start;
  return std::min(passed.count(), ThreadUs() - computed);
}

}  // namespace isomer
