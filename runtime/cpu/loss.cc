// Look-ups: Embedding, and the losses.
#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "runtime/cpu/kernels.h"

namespace isomer {
namespace {

absl::Status OutOfRange(const char* op, int64_t index, int64_t size) {
  return absl::InvalidArgumentError(
      absl::StrCat(op, ": index ", index, " is not in [0, ", size, ")"));
}

}  // namespace

// Y[i..,h] = W[I[i..],h]; a task with a part of the vocabulary gives zeros for other indices.
KernelFunction EmbeddingKernel(const KernelCall& call) {
  const int64_t first = call.operands[0].origin[0], rows = call.operands[0].shape[0];
  const int64_t width = call.operands[0].shape[1], count = call.operands[1].Volume();
  const int64_t vocabulary = call.declaration.operands[0][0].value();
  if (!call.gradient) {
    return [=](Reads reads, Writes writes) -> absl::Status {
      const float* table = Floats(reads[0]);
      const int64_t* indices = Indices(reads[1]);
      float* y = Floats(writes[0]);
      for (int64_t i = 0; i < count; ++i, y += width) {
        if (indices[i] < 0 || indices[i] >= vocabulary) {
          return OutOfRange("embedding", indices[i], vocabulary);
        }
        const int64_t row = indices[i] - first;
        if (row < 0 || row >= rows) {
          std::fill(y, y + width, 0.0f);
        } else {
          std::copy(table + row * width, table + (row + 1) * width, y);
        }
      }
      return absl::OkStatus();
    };
  }
  return [=](Reads reads, Writes writes) {
    const int64_t* indices = Indices(reads[1]);
    const float* g = Floats(reads[3]);
    float* dw = Floats(writes[0]);
    std::fill(dw, dw + rows * width, 0.0f);
    for (int64_t i = 0; i < count; ++i, g += width) {
      const int64_t row = indices[i] - first;
      if (row < 0 || row >= rows) continue;
      for (int64_t h = 0; h < width; ++h) dw[row * width + h] += g[h];
    }
    return absl::OkStatus();
  };
}

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
  const bool gradient = call.gradient;
  return [=](Reads reads, Writes writes) -> absl::Status {
    const float* x = Floats(reads[0]);
    const int64_t* labels = Indices(reads[1]);
    const float g = gradient ? *Floats(reads[3]) * scale : 0;
    double loss = 0;
    for (int64_t n = 0; n < samples; ++n, x += classes) {
      if (labels[n] < 0 || labels[n] >= classes) {
        return OutOfRange("cross_entropy", labels[n], classes);
      }
      const float max = *std::max_element(x, x + classes);
      float sum = 0;
      for (int64_t j = 0; j < classes; ++j) sum += std::exp(x[j] - max);
      loss += std::log(sum) + max - x[labels[n]];
      if (!gradient) continue;
      float* dx = Floats(writes[0]) + n * classes;
      for (int64_t j = 0; j < classes; ++j) {
        dx[j] = g * (std::exp(x[j] - max) / sum - (j == labels[n] ? 1.0f : 0.0f));
      }
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

}  // namespace isomer
