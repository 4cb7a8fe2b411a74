// Look-ups: operators with an operand of indices.
#include <algorithm>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "pcg/support/status_macros.h"
#include "runtime/cpu/index_range.h"
#include "runtime/cpu/kernels.h"
#include "runtime/cpu/lines.h"
#include "runtime/device/elements.h"
#include "runtime/device/strided.h"

namespace isomer {

// Y[i..,j..,k..] = X[i..,I[j..],k..]; a task with a part of the dim that is looked up gives zeros
// for the other indices. Embedding looks up dim 0.
KernelFunction GatherKernel(const KernelCall& call) {
  const size_t rank = call.operands[0].shape.size();
  const int axis = call.op.kind() == OpKind::kEmbedding ? 0 : AxisOf(call, rank);
  const IndexLimits range(call, 0, axis, 1);
  const AxisSplit split = SplitAtAxis(call.operands[0], axis);
  if (call.gradient) {
    const int64_t cleared = call.Adds(0) ? 0 : call.operands[0].Volume();
    return [=](Reads reads, Writes writes) -> absl::Status {
      ISOMER_ASSIGN_OR_RETURN(const std::vector<int64_t> indices, range.Read(reads[1]));
      const float* g = Floats(reads[3]);
      float* dx = Floats(writes[0]);
      std::fill_n(dx, cleared, 0.0f);
      for (int64_t o = 0; o < split.outer; ++o, dx += split.size * split.inner) {
        for (int64_t index : indices) {
          float* to = dx + index * split.inner;
          for (int64_t i = 0; index >= 0 && i < split.inner; ++i) to[i] += g[i];
          g += split.inner;
        }
      }
      return absl::OkStatus();
    };
  }
  const int64_t row = split.inner * BytesPerElement(call.dtypes[0]);
  return [=](Reads reads, Writes writes) -> absl::Status {
    ISOMER_ASSIGN_OR_RETURN(const std::vector<int64_t> indices, range.Read(reads[1]));
    const char* x = static_cast<const char*>(reads[0]);
    char* y = static_cast<char*>(writes[0]);
    for (int64_t o = 0; o < split.outer; ++o, x += split.size * row) {
      for (int64_t index : indices) {
        if (index < 0) {
          std::memset(y, 0, row);
        } else {
          std::memcpy(y, x + index * row, row);
        }
        y += row;
      }
    }
    return absl::OkStatus();
  };
}

namespace {

// Rows [b..,v,h] of operand 0 and the indices [b..,..] of operand 1.
struct BatchesOfRows {
  explicit BatchesOfRows(const KernelCall& call)
      : range(call, 0, static_cast<int>(call.operands[0].shape.size()) - 2, 1),
        rows(call.operands[0].shape.end()[-2]),
        width(call.operands[0].shape.back()),
        batches(BatchesOf(call.operands[0])),
        indices(batches == 0 ? 0 : call.operands[1].Volume() / batches) {}

  // Calls f(i, element of operand 0 where the row begins that index i selects), for those of them
  // that are of the task's part.
  template <typename Function>
  absl::Status ForEach(const void* of, Function f) const {
    ISOMER_ASSIGN_OR_RETURN(const std::vector<int64_t> selected, range.Read(of));
    for (int64_t i = 0; i < batches * indices; ++i) {
      if (selected[i] >= 0) f(i, (i / indices * rows + selected[i]) * width);
    }
    return absl::OkStatus();
  }

  template <typename Operand>
  static int64_t BatchesOf(const Operand& table) {
    int64_t batches = 1;
    for (size_t i = 0; i + 2 < table.shape.size(); ++i) batches *= table.shape[i];
    return batches;
  }

  IndexLimits range;
  int64_t rows, width;
  int64_t batches;
  int64_t indices;  // of a batch
};

}  // namespace

// Y[b..,j..,:] = X[b..,I[b..,j..],:]
KernelFunction GatherRowsKernel(const KernelCall& call) {
  const BatchesOfRows of(call);
  if (call.gradient) {
    return [of](Reads reads, Writes writes) -> absl::Status {
      const float* g = Floats(reads[3]);
      float* dx = Floats(writes[0]);
      std::fill_n(dx, of.batches * of.rows * of.width, 0.0f);
      return of.ForEach(reads[1], [&](int64_t i, int64_t row) {
        for (int64_t h = 0; h < of.width; ++h) dx[row + h] += g[i * of.width + h];
      });
    };
  }
  return
      [of, element = BytesPerElement(call.dtypes[0])](Reads reads, Writes writes) -> absl::Status {
        const char* x = static_cast<const char*>(reads[0]);
        char* y = static_cast<char*>(writes[0]);
        const int64_t bytes = of.width * element;
        std::memset(y, 0, of.batches * of.indices * bytes);
        return of.ForEach(reads[1], [&](int64_t i, int64_t row) {
          std::memcpy(y + i * bytes, x + row * element, bytes);
        });
      };
}

// Y[b..,j..,:] = sum_l W[b..,j..,l] X[b..,I[b..,j..,l],:]
KernelFunction GatherSumKernel(const KernelCall& call) {
  const BatchesOfRows of(call);
  const int64_t choices = call.operands[1].shape.back();
  if (call.gradient) {
    return [of, choices](Reads reads, Writes writes) -> absl::Status {
      const float *x = Floats(reads[0]), *weights = Floats(reads[2]), *g = Floats(reads[4]);
      float *dx = Floats(writes[0]), *dw = Floats(writes[2]);
      if (dx != nullptr) std::fill_n(dx, of.batches * of.rows * of.width, 0.0f);
      if (dw != nullptr) std::fill_n(dw, of.batches * of.indices, 0.0f);
      return of.ForEach(reads[1], [&](int64_t i, int64_t row) {
        const float* of_sum = g + i / choices * of.width;
        for (int64_t h = 0; dx != nullptr && h < of.width; ++h) {
          dx[row + h] += weights[i] * of_sum[h];
        }
        for (int64_t h = 0; dw != nullptr && h < of.width; ++h) dw[i] += x[row + h] * of_sum[h];
      });
    };
  }
  return [of, choices](Reads reads, Writes writes) -> absl::Status {
    const float *x = Floats(reads[0]), *weights = Floats(reads[2]);
    float* y = Floats(writes[0]);
    std::fill_n(y, of.batches * of.indices / choices * of.width, 0.0f);
    return of.ForEach(reads[1], [&](int64_t i, int64_t row) {
      float* sum = y + i / choices * of.width;
      for (int64_t h = 0; h < of.width; ++h) sum[h] += weights[i] * x[row + h];
    });
  };
}

// Y[b,h] = sum_l W[I[b,l],h], or the mean over all l, of which a task may have a part.
KernelFunction EmbeddingBagKernel(const KernelCall& call) {
  const IndexLimits range(call, 0, 0, 1);
  const int64_t rows = call.operands[0].shape[0], width = call.operands[0].shape[1];
  const int64_t bags = call.operands[1].shape[0], bag = call.operands[1].shape[1];
  const bool mean = call.op.Int("mean") == 1;
  const float scale =
      mean ? 1.0f / static_cast<float>(call.declaration.operands[1][1].value()) : 1.0f;
  const int64_t cleared = call.Adds(0) ? 0 : (call.gradient ? rows : bags) * width;
  return [=, gradient = call.gradient](Reads reads, Writes writes) -> absl::Status {
    ISOMER_ASSIGN_OR_RETURN(const std::vector<int64_t> indices, range.Read(reads[1]));
    float* to = Floats(writes[0]);
    std::fill_n(to, cleared, 0.0f);
    for (int64_t i = 0; i < bags * bag; ++i) {
      if (indices[i] < 0) continue;
      const int64_t of_bag = i / bag * width, of_row = indices[i] * width;
      const float* from = gradient ? Floats(reads[3]) + of_bag : Floats(reads[0]) + of_row;
      float* sum = to + (gradient ? of_row : of_bag);
      for (int64_t h = 0; h < width; ++h) sum[h] += scale * from[h];
    }
    return absl::OkStatus();
  };
}

namespace {

// A loop over the indices of GatherElements and ScatterElements, in order. Calls f(position among
// the indices, offset in the tensor but for the axis).
struct ElementLoop {
  ElementLoop(const KernelCall& call, int axis, const Box& tensor) : loop({}, {}) {
    const Box& indices = call.operands[1];
    const int rank = static_cast<int>(tensor.shape.size());
    std::vector<int64_t> of_tensor = BroadcastStrides(tensor.shape, rank);
    axis_stride = of_tensor[axis];
    for (int i = 0; i < rank; ++i) {
      if (i != axis) base += (indices.origin[i] - tensor.origin[i]) * of_tensor[i];
    }
    of_tensor[axis] = 0;
    loop = StridedLoop<2>(indices.shape, {BroadcastStrides(indices.shape, rank), of_tensor});
  }
  template <typename Function>
  void ForEach(Function f) const {
    loop.ForEachRun([&](const auto& at, int64_t count, const auto& stride) {
      for (int64_t i = 0; i < count; ++i) {
        f(at[0] + i * stride[0], base + at[1] + i * stride[1]);
      }
    });
  }

  StridedLoop<2> loop;
  int64_t base = 0, axis_stride = 0;
};

}  // namespace

KernelFunction GatherElementsKernel(const KernelCall& call) {
  const int axis = AxisOf(call, call.operands[0].shape.size());
  const IndexLimits range(call, 0, axis, 1);
  const ElementLoop loop(call, axis, call.operands[0]);
  if (call.gradient) {
    return [=, volume = call.operands[0].Volume()](Reads reads, Writes writes) -> absl::Status {
      ISOMER_ASSIGN_OR_RETURN(const std::vector<int64_t> indices, range.Read(reads[1]));
      const float* g = Floats(reads[3]);
      float* dx = Floats(writes[0]);
      std::fill_n(dx, volume, 0.0f);
      loop.ForEach([&](int64_t i, int64_t at) {
        if (indices[i] >= 0) dx[at + indices[i] * loop.axis_stride] += g[i];
      });
      return absl::OkStatus();
    };
  }
  return
      [=, element = BytesPerElement(call.dtypes[0])](Reads reads, Writes writes) -> absl::Status {
        ISOMER_ASSIGN_OR_RETURN(const std::vector<int64_t> indices, range.Read(reads[1]));
        WithElementSize(element, [&](auto unit) {
          const auto* x = static_cast<const decltype(unit)*>(reads[0]);
          auto* y = static_cast<decltype(unit)*>(writes[0]);
          loop.ForEach([&](int64_t i, int64_t at) {
            y[i] = indices[i] < 0 ? 0 : x[at + indices[i] * loop.axis_stride];
          });
        });
        return absl::OkStatus();
      };
}

namespace {

void ScatterOne(int64_t reduction, float update, float* y) {
  switch (reduction) {
    case 0:
      *y = update;
      break;
    case 1:
      *y += update;
      break;
    case 2:
      *y *= update;
      break;
    case 3:
      *y = std::max(*y, update);
      break;
    default:
      *y = std::min(*y, update);
  }
}

// For replacing and adding: what is replaced has no gradient, nor has an update that a later one
// replaces.
KernelFunction ScatterElementsGradient(const KernelCall& call, const IndexLimits& range,
                                       const ElementLoop& loop) {
  const bool replaces = call.op.Int("reduction") == 0;
  const int64_t volume = call.operands[0].Volume();
  return [=](Reads reads, Writes writes) -> absl::Status {
    ISOMER_ASSIGN_OR_RETURN(const std::vector<int64_t> indices, range.Read(reads[1]));
    const float* g = Floats(reads[4]);
    float *dx = Floats(writes[0]), *du = Floats(writes[2]);
    std::vector<int64_t> last(replaces ? volume : 0, -1);  // the update that each element has
    if (dx != nullptr) std::copy_n(g, volume, dx);
    loop.ForEach([&](int64_t i, int64_t at) {
      const int64_t target = at + indices[i] * loop.axis_stride;
      if (du != nullptr) du[i] = indices[i] < 0 ? 0 : g[target];
      if (indices[i] < 0 || !replaces) return;
      if (dx != nullptr) dx[target] = 0;
      if (du != nullptr && last[target] >= 0) du[last[target]] = 0;
      last[target] = i;
    });
    return absl::OkStatus();
  };
}

}  // namespace

// A task has a part of the output, and ignores what is not for it.
KernelFunction ScatterElementsKernel(const KernelCall& call) {
  const int axis = AxisOf(call, call.operands[0].shape.size());
  const IndexLimits range(call, 0, axis, 1);
  const ElementLoop loop(call, axis, call.operands[0]);
  const int64_t reduction = call.op.Int("reduction");
  if (call.gradient) {
    return reduction > 1 ? ReferenceKernel(call) : ScatterElementsGradient(call, range, loop);
  }
  return [=, volume = call.operands[0].Volume()](Reads reads, Writes writes) -> absl::Status {
    ISOMER_ASSIGN_OR_RETURN(const std::vector<int64_t> indices, range.Read(reads[1]));
    const float* updates = Floats(reads[2]);
    float* y = Floats(writes[0]);
    std::copy_n(Floats(reads[0]), volume, y);
    loop.ForEach([&](int64_t i, int64_t at) {
      if (indices[i] < 0) return;
      ScatterOne(reduction, updates[i], y + at + indices[i] * loop.axis_stride);
    });
    return absl::OkStatus();
  };
}

// Of any type: what replaces elements moves them, and nothing else where the result lies in the
// operand's place (OperandInPlace, pcg/schedule/memory/carries.h).
KernelFunction ReplacedElementsKernel(const KernelCall& call) {
  if (call.gradient || call.op.Int("reduction") != 0) return nullptr;
  const int axis = AxisOf(call, call.operands[0].shape.size());
  const IndexLimits range(call, 0, axis, 1);
  const ElementLoop loop(call, axis, call.operands[0]);
  const int64_t element = BytesPerElement(call.dtypes[0]);
  const int64_t bytes = call.operands[0].Volume() * element;
  return [=](Reads reads, Writes writes) -> absl::Status {
    ISOMER_ASSIGN_OR_RETURN(const std::vector<int64_t> indices, range.Read(reads[1]));
    if (reads[0] != writes[0]) std::memcpy(writes[0], reads[0], bytes);
    WithElementSize(element, [&](auto unit) {
      const auto* updates = static_cast<const decltype(unit)*>(reads[2]);
      auto* y = static_cast<decltype(unit)*>(writes[0]);
      loop.ForEach([&](int64_t i, int64_t at) {
        if (indices[i] >= 0) y[at + indices[i] * loop.axis_stride] = updates[i];
      });
    });
    return absl::OkStatus();
  };
}

// Y[i..,k,j..] = [k == I[i..,j..]]
KernelFunction OneHotKernel(const KernelCall& call) {
  const Box& out = call.outputs[0];
  const int axis = AxisOf(call, out.shape.size());
  const AxisSplit split = SplitAtAxis(out, axis);
  return [=, first = out.origin[axis], volume = out.Volume(), dtype = call.dtypes[0]](
             Reads reads, Writes writes) {
    std::vector<double> indices(split.outer * split.inner);
    LoadElements(dtype, reads[0], split.outer * split.inner, indices.data());
    float* y = Floats(writes[0]);
    std::fill_n(y, volume, 0.0f);
    for (size_t i = 0; i < indices.size(); ++i) {
      const int64_t k = static_cast<int64_t>(indices[i]) - first;
      if (k < 0 || k >= split.size) continue;
      const int64_t at = static_cast<int64_t>(i);
      y[(at / split.inner * split.size + k) * split.inner + at % split.inner] = 1;
    }
    return absl::OkStatus();
  };
}

}  // namespace isomer
