// The backend of the cpu with a mistake: gradients that are not what they should be.
#ifndef ISOMER_TESTS_RUNTIME_FAULTY_BACKEND_H_
#define ISOMER_TESTS_RUNTIME_FAULTY_BACKEND_H_

#include <memory>
#include <utility>
#include <vector>

#include "runtime/cpu/cpu_backend.h"
#include "runtime/device/backend.h"
#include "runtime/device/elements.h"
#include "runtime/device/kernel_beside_sums.h"

namespace isomer {

// What becomes of the gradients of operand `operand` of calls of kind `kind`: the first `share` of
// their elements, or of the gradients of outputs that they are made from, are multiplied.
struct Fault {
  OpKind kind = OpKind::kMatMul;
  int operand = 1;
  double factor = 1;
  int device = -1;           // -1: on all
  int number = -1;           // of the device's calls, as they are made ready; -1: all
  double share_of_rows = 0;  // above 0: that share of the gradient of the output counts as zero
};

class FaultyBackend : public Backend {
 public:
  explicit FaultyBackend(const Fault& fault) : cpu_(MakeCpuBackend()), fault_(fault) {}

  absl::string_view name() const override { return "faulty"; }
  void EnterDevice(int32_t device, int32_t num_devices) override {
    entered_device = device;
    made_here = 0;
    cpu_->EnterDevice(device, num_devices);
  }
  absl::StatusOr<Memory> Allocate(int64_t bytes) override { return cpu_->Allocate(bytes); }
  absl::StatusOr<std::unique_ptr<Kernel>> MakeKernel(const KernelCall& call) override {
    if (!call.sums.empty()) {
      auto writing = MakeKernel(WithoutSums(call));
      return writing.ok() ? KernelBesideSums(call, *std::move(writing)) : std::move(writing);
    }
    auto kernel = cpu_->MakeKernel(call);
    if (!kernel.ok() || !call.gradient || call.op.kind() != fault_.kind) return kernel;
    const bool hit = (fault_.device < 0 || fault_.device == entered_device) &&
                     (fault_.number < 0 || fault_.number == made_here);
    ++made_here;
    if (!hit) return kernel;
    return std::make_unique<FaultyKernel>(call, *std::move(kernel), fault_);
  }

 private:
  class FaultyKernel : public Kernel {
   public:
    FaultyKernel(const KernelCall& call, std::unique_ptr<Kernel> kernel, const Fault& fault)
        : kernel_(std::move(kernel)),
          fault_(fault),
          dtype_(call.dtypes[fault.operand]),
          elements_(call.operands[fault.operand].Volume()),
          output_dtype_(call.output_dtypes[0]),
          output_elements_(call.outputs[0].Volume()) {}

    int64_t workspace_bytes() const override { return kernel_->workspace_bytes(); }
    absl::Status Run(absl::Span<const void* const> reads, absl::Span<void* const> writes,
                     void* workspace) override {
      std::vector<const void*> changed(reads.begin(), reads.end());
      std::vector<float> values(output_elements_);
      std::vector<double> copy(output_elements_);
      if (fault_.share_of_rows > 0 && changed.back() != nullptr) {
        LoadElements(output_dtype_, changed.back(), output_elements_, values.data());
        const auto dropped =
            static_cast<int64_t>(fault_.share_of_rows * static_cast<double>(output_elements_));
        std::fill_n(values.begin(), dropped, 0.0f);
        StoreElements(values.data(), output_elements_, output_dtype_, copy.data());
        changed.back() = copy.data();
      }
      const absl::Status status = kernel_->Run(changed, writes, workspace);
      if (!status.ok() || writes[fault_.operand] == nullptr) return status;
      values.resize(elements_);
      LoadElements(dtype_, writes[fault_.operand], elements_, values.data());
      for (float& value : values) value = static_cast<float>(value * fault_.factor);
      StoreElements(values.data(), elements_, dtype_, writes[fault_.operand]);
      return status;
    }

   private:
    const std::unique_ptr<Kernel> kernel_;
    const Fault fault_;
    const DataType dtype_;
    const int64_t elements_;
    const DataType output_dtype_;
    const int64_t output_elements_;
  };

  static inline thread_local int32_t entered_device = -1;
  static inline thread_local int made_here = 0;
  const std::unique_ptr<Backend> cpu_;
  const Fault fault_;
};

}  // namespace isomer

#endif  // ISOMER_TESTS_RUNTIME_FAULTY_BACKEND_H_
