#include "runtime/checking/rounding_backend.h"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "pcg/ir/operator_facts.h"
#include "pcg/support/hash.h"
#include "pcg/support/status_macros.h"
#include "runtime/checking/rounding_noise.h"
#include "runtime/device/elements.h"
#include "runtime/device/kernel_beside_sums.h"

namespace isomer {

class RoundingBackend::NoisyKernel : public Kernel {
 public:
  // `inner`: in float32; `rounded`: what is run with noise, of a product in 8 bits that; or null.
  NoisyKernel(const KernelCall& call, std::unique_ptr<Kernel> inner,
              std::unique_ptr<Kernel> rounded, RoundingBackend* backend)
      : inner_(std::move(inner)), rounded_(std::move(rounded)), backend_(*backend) {
    const Noise read = NoiseOfReads(call, backend->rounding_);
    const auto written = [&](size_t write) {
      return NoiseOfWrite(call, static_cast<int>(write), backend->rounding_);
    };
    std::vector<Form> outputs, gradients;
    for (size_t o = 0; o < call.operands.size(); ++o) {
      const int64_t elements = call.operands[o].Volume();
      // Not indices, even where they are floats.
      const bool values = HoldsValues(call.op.kind(), static_cast<int>(o));
      const Noise noise = OfOperandInFp8(call, static_cast<int>(o), read);
      reads_.push_back({call.dtypes[o], elements, values ? noise : Noise()});
      if (call.gradient) writes_.push_back({call.dtypes[o], elements, written(o)});
    }
    for (size_t t = 0; t < call.outputs.size(); ++t) {
      const int64_t elements = call.outputs[t].Volume();
      outputs.push_back({call.output_dtypes[t], elements, read});
      gradients.push_back({call.output_dtypes[t], elements, OfGradientInFp8(call, read)});
      if (!call.gradient) writes_.push_back({call.output_dtypes[t], elements, written(t)});
    }
    // What is saved is exact of what was read, disturbed, or rounded as outputs are.
    const Noise saved = SavesPreActivation(call.op) ? Noise{.stored = read.stored} : Noise();
    const auto add_saved = [&](std::vector<Form>* forms) {
      if (call.saved) forms->push_back({call.saved->dtype, call.saved->elements, saved});
    };
    if (!call.gradient) {
      add_saved(&writes_);
      return;
    }
    reads_.insert(reads_.end(), outputs.begin(), outputs.end());
    reads_.insert(reads_.end(), gradients.begin(), gradients.end());
    add_saved(&reads_);
  }

  int64_t workspace_bytes() const override {
    const int64_t of_rounded = rounded_ == nullptr ? 0 : rounded_->workspace_bytes();
    return std::max(inner_->workspace_bytes(), of_rounded);
  }
  absl::Status Run(absl::Span<const void* const> reads, absl::Span<void* const> writes,
                   void* workspace) override {
    if (!backend_.noisy_) return inner_->Run(reads, writes, workspace);
    std::vector<std::vector<double>> copies(reads.size());  // Doubles are aligned for all.
    std::vector<const void*> noisy(reads.begin(), reads.end());
    for (size_t i = 0; i < reads.size(); ++i) {
      if (reads[i] == nullptr || !reads_[i].IsNoisy()) continue;
      copies[i].resize(reads_[i].elements * BytesPerElement(reads_[i].dtype) / 8 + 1);
      Disturb(reads_[i], reads[i], copies[i].data());
      noisy[i] = copies[i].data();
    }
    Kernel& kernel = rounded_ == nullptr ? *inner_ : *rounded_;
    ISOMER_RETURN_IF_ERROR(kernel.Run(noisy, writes, workspace));
    for (size_t i = 0; i < writes.size(); ++i) {
      if (writes[i] == nullptr || !writes_[i].IsNoisy()) continue;
      Disturb(writes_[i], writes[i], writes[i]);
    }
    return absl::OkStatus();
  }

 private:
  struct Form {
    DataType dtype;
    int64_t elements;
    Noise noise;
    bool IsNoisy() const { return IsFloat(dtype) && noise.any(); }
  };

  void Disturb(const Form& form, const void* from, void* to) {
    constexpr int64_t kChunk = 1024;
    float values[kChunk];
    const int64_t bytes = BytesPerElement(form.dtype);
    for (int64_t begin = 0; begin < form.elements; begin += kChunk) {
      const int64_t count = std::min(kChunk, form.elements - begin);
      LoadElements(form.dtype, static_cast<const char*>(from) + begin * bytes, count, values);
      if (backend_.amplitude_ > 0) Shake(form.noise, count, values);
      if (form.noise.stored != DataType::kFloat32) RoundTo(form.noise.stored, count, values);
      StoreElements(values, count, form.dtype, static_cast<char*>(to) + begin * bytes);
    }
  }

  // Zeros stay: padding, masks and what a ReLU leaves are exact in every precision. So do masks
  // that stand for infinity, of which noise would make numbers that are none.
  void Shake(const Noise& noise, int64_t count, float* values) {
    const float relative = static_cast<float>(noise.relative * backend_.amplitude_);
    const float absolute = static_cast<float>(noise.absolute * backend_.amplitude_);
    uint64_t state = backend_.state_;
    for (int64_t i = 0; i < count; ++i) {
      const uint64_t bits = HashMix(state++);
      const float xi = static_cast<float>(static_cast<int32_t>(bits)) * 0x1p-31f;
      const float shift = static_cast<float>(static_cast<int32_t>(bits >> 32)) * 0x1p-31f;
      if (values[i] == 0 || StandsForInfinity(values[i])) continue;
      values[i] += values[i] * relative * xi + absolute * shift;
    }
    backend_.state_ = state;
  }

  // What a type cannot hold stays as it is: masks are no results, and are kept in float32.
  static void RoundTo(DataType dtype, int64_t count, float* values) {
    constexpr float kMost = 65504;
    if (dtype == DataType::kBFloat16) {
      for (int64_t i = 0; i < count; ++i) {
        if (!StandsForInfinity(values[i])) values[i] = BFloat16(values[i]);
      }
    } else {
      for (int64_t i = 0; i < count; ++i) {
        if (std::abs(values[i]) <= kMost) values[i] = Float16(values[i]);
      }
    }
  }

  const std::unique_ptr<Kernel> inner_, rounded_;
  RoundingBackend& backend_;
  std::vector<Form> reads_, writes_;
};

absl::StatusOr<std::unique_ptr<Kernel>> RoundingBackend::MakeKernel(const KernelCall& call) {
  // What is rounded is what is added, not the sum.
  if (!call.sums.empty()) {
    ISOMER_ASSIGN_OR_RETURN(std::unique_ptr<Kernel> writing, MakeKernel(WithoutSums(call)));
    return KernelBesideSums(call, std::move(writing));
  }
  KernelCall exact = call;
  exact.op = WithFp8(call.op, Fp8Scaling::kNone);
  ISOMER_ASSIGN_OR_RETURN(std::unique_ptr<Kernel> kernel, inner_.MakeKernel(exact));
  std::unique_ptr<Kernel> rounded;
  if (Fp8ScalingOf(call.op) != Fp8Scaling::kNone) {
    ISOMER_ASSIGN_OR_RETURN(rounded, inner_.MakeKernel(call));
  }
  return std::make_unique<NoisyKernel>(call, std::move(kernel), std::move(rounded), this);
}

}  // namespace isomer
