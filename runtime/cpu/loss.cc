// Losses: means over samples.
#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "runtime/cpu/kernels.h"
#include "runtime/cpu/vector_math.h"

namespace isomer {
namespace {

absl::Status OutOfRange(const char* op, int64_t index, int64_t size) {
  return absl::InvalidArgumentError(
      absl::StrCat(op, ": index ", index, " is not in [0, ", size, ")"));
}

}  // namespace

namespace {

// The mean divides by the number of all samples, of which a task may have a part.
float InverseCount(const Shape& shape) {
  double count = 1;
  for (const Extent& size : shape) count *= static_cast<double>(size.value());
  return static_cast<float>(1 / count);
}

}  // namespace

KernelFunction CrossEntropyKernel(const KernelCall& call) {
  const int64_t classes = call.operands[0].shape.back(), samples = call.operands[1].Volume();
  const float scale = InverseCount(call.declaration.operands[1]);
  const bool gradient = call.gradient, saves = call.saved.has_value();
  return [=](Reads reads, Writes writes) -> absl::Status {
    const float* x = Floats(reads[0]);
    const auto* found = gradient ? static_cast<const SoftmaxSums*>(reads[4]) : nullptr;
    auto* saved = !gradient && saves ? static_cast<SoftmaxSums*>(writes[1]) : nullptr;
    const int64_t* labels = Indices(reads[1]);
    const float g = gradient ? *Floats(reads[3]) * scale : 0;
    double loss = 0;
    for (int64_t n = 0; n < samples; ++n, x += classes) {
      if (labels[n] < 0 || labels[n] >= classes) {
        return OutOfRange("cross_entropy", labels[n], classes);
      }
      if (!gradient) {
        const SoftmaxSums sums = SumsOfSoftmax(x, classes);
        loss += std::log(sums.sum) + (sums.maximum - x[labels[n]]);
        if (saved != nullptr) saved[n] = sums;
        continue;
      }
      float* dx = Floats(writes[0]) + n * classes;
      ExpOfShifted(x, found[n].maximum, g / found[n].sum, classes, dx);
      dx[labels[n]] -= g;
    }
    if (!gradient) *Floats(writes[0]) = static_cast<float>(loss * scale);
    return absl::OkStatus();
  };
}

KernelFunction MeanSquaredErrorKernel(const KernelCall& call) {
  const int64_t count = call.operands[0].Volume();
  const float scale = InverseCount(call.declaration.operands[0]);
  if (!call.gradient) {
    return [=](Reads reads, Writes writes) {
      const float *a = Floats(reads[0]), *b = Floats(reads[1]);
      double sum = 0;
      for (int64_t i = 0; i < count; ++i) sum += (a[i] - b[i]) * (a[i] - b[i]);
      *Floats(writes[0]) = static_cast<float>(sum * scale);
      return absl::OkStatus();
    };
  }
  return [=](Reads reads, Writes writes) {
    const float *a = Floats(reads[0]), *b = Floats(reads[1]);
    const float g = 2 * *Floats(reads[3]) * scale;
    for (int o : {0, 1}) {
      if (writes[o] == nullptr) continue;
      float* d = Floats(writes[o]);
      for (int64_t i = 0; i < count; ++i) d[i] = (o == 0 ? g : -g) * (a[i] - b[i]);
    }
    return absl::OkStatus();
  };
}

// The mean over all elements of max(x, 0) - x t + log(1 + exp(-|x|)), which is
// -t log s(x) - (1 - t) log(1 - s(x)) with the logistic function s, and does not overflow:
//   dx = (s(x) - t) / n;  dt = -x / n
KernelFunction BinaryCrossEntropyKernel(const KernelCall& call) {
  const int64_t count = call.operands[0].Volume();
  const float scale = InverseCount(call.declaration.operands[0]);
  if (!call.gradient) {
    return [=](Reads reads, Writes writes) {
      const float *x = Floats(reads[0]), *t = Floats(reads[1]);
      double sum = 0;
      for (int64_t i = 0; i < count; ++i) {
        sum += std::max(x[i], 0.0f) - x[i] * t[i] + std::log1p(std::exp(-std::abs(x[i])));
      }
      *Floats(writes[0]) = static_cast<float>(sum * scale);
      return absl::OkStatus();
    };
  }
  return [=](Reads reads, Writes writes) {
    const float *x = Floats(reads[0]), *t = Floats(reads[1]);
    const float g = *Floats(reads[3]) * scale;
    float *dx = Floats(writes[0]), *dt = Floats(writes[1]);
    for (int64_t i = 0; i < count; ++i) {
      if (dx != nullptr) dx[i] = g * (0.5f * (std::tanh(0.5f * x[i]) + 1) - t[i]);
      if (dt != nullptr) dt[i] = -g * x[i];
    }
    return absl::OkStatus();
  };
}

}  // namespace isomer
