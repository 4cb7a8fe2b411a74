#include <dlfcn.h>

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "runtime/backend.h"
#include "runtime/cpu/kernels.h"

namespace isomer {
namespace {

class FunctionKernel : public Kernel {
 public:
  explicit FunctionKernel(KernelFunction function) : function_(std::move(function)) {}
  absl::Status Run(Reads reads, Writes writes) override { return function_(reads, writes); }

 private:
  const KernelFunction function_;
};

// relu, tanh, .. take the derivative from the result, which the evaluator does not do.
bool HasReferenceGradient(OpKind kind) {
  return kind != OpKind::kRelu && kind != OpKind::kTanh && kind != OpKind::kSigmoid &&
         kind != OpKind::kExp && kind != OpKind::kSoftmax;
}

KernelFunction KernelOf(const KernelCall& call) {
  switch (call.op.kind()) {
    case OpKind::kMatMul:
      return MatMulKernel(call);
    case OpKind::kConv2d:
      return Conv2dKernel(call);
    case OpKind::kAdd:
    case OpKind::kSub:
    case OpKind::kMul:
    case OpKind::kDiv:
      return BinaryKernel(call);
    case OpKind::kScale:
    case OpKind::kRelu:
    case OpKind::kGelu:
    case OpKind::kTanh:
    case OpKind::kSigmoid:
    case OpKind::kSwish:
    case OpKind::kExp:
      return UnaryKernel(call);
    case OpKind::kSoftmax:
      return SoftmaxKernel(call);
    case OpKind::kLayerNorm:
      return LayerNormKernel(call);
    case OpKind::kBatchNorm:
      return BatchNormKernel(call);
    case OpKind::kMaxPool:
    case OpKind::kAvgPool:
      return PoolKernel(call);
    case OpKind::kReduceSum:
    case OpKind::kReduceMean:
      return ReductionKernel(call);
    case OpKind::kTranspose:
      return TransposeKernel(call);
    case OpKind::kReshape:
      return ReshapeKernel(call);
    case OpKind::kConcat:
      return ConcatKernel(call);
    case OpKind::kSplit:
      return SplitKernel(call);
    case OpKind::kEmbedding:
      return EmbeddingKernel(call);
    case OpKind::kCrossEntropy:
      return CrossEntropyKernel(call);
    case OpKind::kMeanSquaredError:
      return MeanSquaredErrorKernel(call);
    default:
      return ReferenceKernel(call);
  }
}

class CpuBackend : public Backend {
 public:
  explicit CpuBackend(bool reference) : reference_(reference) {}

  absl::string_view name() const override { return "cpu"; }

  // A device is one thread: oneDNN's OpenMP takes its number of threads from the thread that calls
  // it. The OpenMP library is looked up at run time because oneDNN may have been built without.
  void EnterDevice(int32_t, int32_t) override {
    using SetThreads = void (*)(int);
    const auto set_threads =
        reinterpret_cast<SetThreads>(dlsym(RTLD_DEFAULT, "omp_set_num_threads"));
    if (set_threads != nullptr) set_threads(1);
  }

  absl::StatusOr<Memory> Allocate(int64_t bytes) override {
    constexpr int64_t kAlignment = 64;
    const int64_t rounded = std::max<int64_t>(bytes + kAlignment - 1, 1) / kAlignment * kAlignment;
    char* data =
        static_cast<char*>(std::aligned_alloc(kAlignment, std::max<int64_t>(rounded, kAlignment)));
    if (data == nullptr) {
      return absl::ResourceExhaustedError(
          absl::StrCat("cpu backend: there are no ", bytes, " bytes of memory"));
    }
    return Memory(data, [](char* p) { std::free(p); });
  }

  absl::StatusOr<std::unique_ptr<Kernel>> MakeKernel(const KernelCall& call) override {
    const bool reference = reference_ && !(call.gradient && !HasReferenceGradient(call.op.kind()));
    KernelFunction function = reference ? ReferenceKernel(call) : KernelOf(call);
    if (function == nullptr) {
      return absl::InternalError(absl::StrCat("no kernel computes ", call.op.ToString()));
    }
    return std::make_unique<FunctionKernel>(std::move(function));
  }

 private:
  const bool reference_;
};

}  // namespace

std::unique_ptr<Backend> MakeCpuBackend(bool reference) {
  return std::make_unique<CpuBackend>(reference);
}

}  // namespace isomer
