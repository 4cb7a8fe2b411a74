#include "runtime/cpu/cpu_backend.h"

#include <dlfcn.h>
#include <malloc.h>
#include <sys/mman.h>

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <optional>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "dnnl.h"
#include "pcg/ir/operator_facts.h"
#include "pcg/profile/work.h"
#include "pcg/support/status_macros.h"
#include "runtime/cpu/kernels.h"
#include "runtime/cpu/memory_order.h"
#include "runtime/cpu/widen.h"
#include "runtime/device/kernel_beside_sums.h"

namespace isomer {
namespace {

// Has malloc keep what kernels free. Workspaces of a step that went back to the system would be
// given out as new pages, filled with zeros, in the next one: a tenth of the step of a small
// convolutional network.
void KeepFreedMemory() {
#ifdef __GLIBC__
  mallopt(M_MMAP_THRESHOLD, 32 << 20);  // the most that it takes
  mallopt(M_TRIM_THRESHOLD, 1 << 30);
#endif
}

class FunctionKernel : public Kernel {
 public:
  explicit FunctionKernel(KernelFunction function) : function_(std::move(function)) {}
  int64_t workspace_bytes() const override { return function_.workspace_bytes(); }
  absl::Status Run(Reads reads, Writes writes, void* workspace) override {
    return function_(reads, writes, static_cast<char*>(workspace));
  }

 private:
  const KernelFunction function_;
};

// Kernels that take buffers of any data type: elementwise ones, and those that only move elements.
// Null: none.
KernelFunction AnyTypeKernel(const KernelCall& call) {
  switch (call.op.kind()) {
    case OpKind::kTranspose:
      return TransposeKernel(call);
    case OpKind::kReshape:
      return ReshapeKernel(call);
    case OpKind::kConcat:
      return ConcatKernel(call);
    case OpKind::kSplit:
      return SplitKernel(call);
    case OpKind::kTrilu:
      return TriluKernel(call);
    case OpKind::kCast:
      return UnaryKernel(call);
    case OpKind::kArgMax:
    case OpKind::kArgMin:
    case OpKind::kEqual:
    case OpKind::kLess:
    case OpKind::kLessEqual:
    case OpKind::kNot:
    case OpKind::kSign:
    case OpKind::kFloor:
    case OpKind::kCeil:
    case OpKind::kRound:
      if (call.gradient) return ZeroGradientKernel(call);
      break;
    default:
      break;
  }
  if (call.gradient) return nullptr;
  switch (call.op.kind()) {
    case OpKind::kSlice:
    case OpKind::kPad:
    case OpKind::kExpand:
      return IndexMapKernel(call);
    case OpKind::kEmbedding:
    case OpKind::kGather:
      return GatherKernel(call);
    case OpKind::kGatherRows:
      return GatherRowsKernel(call);
    case OpKind::kGatherElements:
      return GatherElementsKernel(call);
    case OpKind::kScatterElements:
      return ReplacedElementsKernel(call);
    default:
      return ElementwiseKernel(call);
  }
}

// Kernels of float32, with indices of 64 bits. Null: none.
KernelFunction Float32Kernel(const KernelCall& call) {
  switch (call.op.kind()) {
    case OpKind::kMatMul:
      return MatMulKernel(call);
    case OpKind::kLinear:
      return LinearKernel(call);
    case OpKind::kConv1d:
    case OpKind::kConv2d:
    case OpKind::kConv3d:
    case OpKind::kConvTranspose:
      return Conv2dKernel(call);
    case OpKind::kDropout:
      return DropoutKernel(call);
    case OpKind::kSoftmax:
      return SoftmaxKernel(call);
    case OpKind::kLogSoftmax:
      return LogSoftmaxKernel(call);
    case OpKind::kLayerNorm:
      return LayerNormKernel(call);
    case OpKind::kRmsNorm:
      return RmsNormKernel(call);
    case OpKind::kGroupNorm:
      return GroupNormKernel(call);
    case OpKind::kBatchNorm:
      return BatchNormKernel(call);
    case OpKind::kBatchNormTraining:
      return BatchNormTrainingKernel(call);
    case OpKind::kMaxPool:
    case OpKind::kAvgPool:
      return PoolKernel(call);
    case OpKind::kAdaptiveAvgPool:
      return AdaptivePoolKernel(call);
    case OpKind::kReduceSum:
    case OpKind::kReduceMean:
    case OpKind::kReduceMax:
    case OpKind::kReduceMin:
    case OpKind::kReduceProd:
      return ReductionKernel(call);
    case OpKind::kArgMax:
    case OpKind::kArgMin:
      return ArgMaxKernel(call);
    case OpKind::kTopK:
      return TopKKernel(call);
    case OpKind::kCumSum:
      return CumSumKernel(call);
    case OpKind::kSlice:
    case OpKind::kPad:
    case OpKind::kExpand:
      return IndexMapKernel(call);
    case OpKind::kEmbedding:
    case OpKind::kGather:
      return GatherKernel(call);
    case OpKind::kEmbeddingBag:
      return EmbeddingBagKernel(call);
    case OpKind::kGatherMatMul:
      return GatherMatMulKernel(call);
    case OpKind::kGatherRows:
      return GatherRowsKernel(call);
    case OpKind::kGatherSum:
      return GatherSumKernel(call);
    case OpKind::kTopKRouting:
      return TopKRoutingKernel(call);
    case OpKind::kGatherElements:
      return GatherElementsKernel(call);
    case OpKind::kScatterElements:
      return ScatterElementsKernel(call);
    case OpKind::kAttention:
    case OpKind::kCappedAttention:
    case OpKind::kSinkAttention:
      return AttentionKernel(call);
    case OpKind::kRotary:
      return RotaryKernel(call);
    case OpKind::kLstmCell:
      return LstmCellKernel(call);
    case OpKind::kGruCell:
      return GruCellKernel(call);
    case OpKind::kCrossEntropy:
      return CrossEntropyKernel(call);
    case OpKind::kMeanSquaredError:
      return MeanSquaredErrorKernel(call);
    case OpKind::kBinaryCrossEntropy:
      return BinaryCrossEntropyKernel(call);
    default:
      return ElementwiseKernel(call);
  }
}

// The operands that are neither indices nor conditions are floats.
bool IsOfFloats(const KernelCall& call) {
  for (size_t o = 0; o < call.dtypes.size(); ++o) {
    const bool holds_values = HoldsValues(call.op.kind(), static_cast<int>(o));
    if (holds_values && !IsFloat(call.dtypes[o])) return false;
  }
  return true;
}

// The kernel of a call: its own, or that of float32 on converted copies. Null: none.
KernelFunction KernelOf(const KernelCall& call) {
  if (!call.layouts.AreRowMajor() && !LooksAtLayouts(call.op.kind())) {
    const std::optional<KernelCall> turned = InMemoryOrder(call);
    return turned ? KernelOf(*turned) : nullptr;
  }
  if (KernelFunction kernel = AnyTypeKernel(call); kernel != nullptr) return kernel;
  if (call.op.kind() == OpKind::kOneHot) return OneHotKernel(call);
  if (!IsOfFloats(call)) return nullptr;
  const KernelCall wide = Widened(call);
  KernelFunction kernel = Float32Kernel(wide);
  const bool is_wide = wide.dtypes == call.dtypes && wide.output_dtypes == call.output_dtypes;
  return kernel == nullptr || is_wide ? kernel : OnWidenedCopies(call, std::move(kernel));
}

// Whether its kernel does what KernelCall::sums says.
bool KnowsSums(const KernelCall& call) {
  const KernelCall writing = WithoutSums(call);
  const auto has_kernel = [&] { return KernelOf(writing) != nullptr; };
  switch (call.op.kind()) {
    case OpKind::kMatMul:
    case OpKind::kLinear:
    case OpKind::kEmbedding:
    case OpKind::kGather:
    case OpKind::kEmbeddingBag:
    case OpKind::kReduceSum:
    case OpKind::kReduceMean:
      return has_kernel();
    case OpKind::kConv1d:
    case OpKind::kConv2d:
    case OpKind::kConv3d:
      return IsPointConvolution(call);
    default:
      break;
  }
  if (AnyTypeKernel(writing) != nullptr) return false;
  // Others write float32 where they are widened to it.
  const bool adds = absl::c_any_of(call.sums, [](const KernelCall::Sum& sum) { return sum.adds; });
  return (!adds || ElementwiseKernel(writing) != nullptr) && has_kernel();
}

// The reference evaluator differentiates from the operands; the gradients that are given the
// result instead have kernels of their own only.
bool HasReferenceGradient(const KernelCall& call) { return !NeedsOf(call).outputs[0]; }

class CpuBackend : public Backend {
 public:
  // What malloc keeps is of the process: set here, not by the devices' threads. Where another
  // allocator stands before glibc's, that would be initialised by several of them at a time.
  explicit CpuBackend(bool reference) : reference_(reference) { KeepFreedMemory(); }

  absl::string_view name() const override { return "cpu"; }

  std::string Libraries() const override {
    const dnnl_version_t& version = *dnnl_version();
    return absl::StrCat("oneDNN ", version.major, ".", version.minor, ".", version.patch);
  }

  // A device is one thread: oneDNN's OpenMP takes its number of threads from the thread that calls
  // it. The OpenMP library is looked up at run time because oneDNN may have been built without.
  void EnterDevice(int32_t, int32_t) override {
    using SetThreads = void (*)(int);
    const auto set_threads =
        reinterpret_cast<SetThreads>(dlsym(RTLD_DEFAULT, "omp_set_num_threads"));
    if (set_threads != nullptr) set_threads(1);
  }

  absl::StatusOr<Memory> Allocate(int64_t bytes) override {
    constexpr int64_t kLine = 64, kHugePage = int64_t{2} << 20;
    const int64_t alignment = bytes < kHugePage ? kLine : kHugePage;
    const int64_t rounded = (std::max<int64_t>(bytes, 1) + kLine - 1) / kLine * kLine;
    void* data = nullptr;
    if (posix_memalign(&data, alignment, rounded) != 0) {
      return absl::ResourceExhaustedError(
          absl::StrCat("cpu backend: there are no ", bytes, " bytes of memory"));
    }
    // Embedding tables and optimizer states miss the translation cache page by page, and which
    // small pages a process gets changes from run to run how they share the caches. Advice only.
    if (bytes >= kHugePage) madvise(data, rounded / kHugePage * kHugePage, MADV_HUGEPAGE);
    return Memory(static_cast<char*>(data), [](char* p) { std::free(p); });
  }

  absl::StatusOr<std::unique_ptr<Kernel>> MakeKernel(const KernelCall& call) override {
    if (!call.sums.empty() && (reference_ || !KnowsSums(call))) {
      ISOMER_ASSIGN_OR_RETURN(std::unique_ptr<Kernel> writing, MakeKernel(WithoutSums(call)));
      return KernelBesideSums(call, std::move(writing));
    }
    const bool needs_outputs = call.gradient && !HasReferenceGradient(call);
    KernelFunction function = reference_ && !needs_outputs ? nullptr : KernelOf(call);
    if (function == nullptr && !needs_outputs && call.sums.empty()) {
      function = ReferenceKernel(call);
    }
    if (function == nullptr) {
      return absl::InternalError(absl::StrCat("no kernel computes ", call.op.ToString()));
    }
    return std::make_unique<FunctionKernel>(std::move(function));
  }

 private:
  const bool reference_;
};

}  // namespace

bool HasCpuKernel(const KernelCall& call) { return KernelOf(call) != nullptr; }

std::unique_ptr<Backend> MakeCpuBackend(bool reference) {
  return std::make_unique<CpuBackend>(reference);
}

}  // namespace isomer
