// Operators that relabel elements, of any size; their gradients move elements back.
#include <algorithm>
#include <cstring>

#include "runtime/cpu/kernels.h"
#include "runtime/device/strided.h"

namespace isomer {
namespace {

// The dim along which offsets `n` of the loop go in steps of one; -1: none does.
int UnitDim(const StridedLoop<2>& loop, size_t n) {
  for (size_t i = 0; i < loop.sizes().size(); ++i) {
    if (loop.strides(n)[i] == 1 && loop.sizes()[i] > 1) return static_cast<int>(i);
  }
  return -1;
}

// Copies an array whose elements lie side by side along one dim where they come from, and along
// another where they go: in tiles of which both sides stay in the first cache, as each line of a
// cache is used by as many rows or columns as it has elements.
template <typename T>
void CopyTiled(const StridedLoop<2>& loop, int from_dim, int to_dim, const T* x, T* y) {
  constexpr int64_t kTile = 16;
  const std::vector<int64_t>& sizes = loop.sizes();
  const int64_t rows = sizes[from_dim], columns = sizes[to_dim];
  const int64_t x_step = loop.strides(0)[to_dim], y_step = loop.strides(1)[from_dim];
  std::vector<int64_t> outer = sizes;
  outer[from_dim] = outer[to_dim] = 1;
  StridedLoop<2>(outer, {loop.strides(0), loop.strides(1)})
      .ForEachRun([&](const auto& at, int64_t run, const auto& stride) {
        for (int64_t o = 0; o < run; ++o) {
          const T* from = x + at[0] + o * stride[0];
          T* to = y + at[1] + o * stride[1];
          for (int64_t row = 0; row < rows; row += kTile) {
            for (int64_t column = 0; column < columns; column += kTile) {
              const int64_t last_row = std::min(row + kTile, rows);
              const int64_t last_column = std::min(column + kTile, columns);
              for (int64_t r = row; r < last_row; ++r) {
                for (int64_t c = column; c < last_column; ++c) {
                  to[r * y_step + c] = from[r + c * x_step];
                }
              }
            }
          }
        }
      });
}

template <typename T>
void CopyStrided(const StridedLoop<2>& loop, const void* from, void* to) {
  const T* x = static_cast<const T*>(from);
  T* y = static_cast<T*>(to);
  const int from_dim = UnitDim(loop, 0), to_dim = UnitDim(loop, 1);
  if (from_dim >= 0 && to_dim >= 0 && from_dim != to_dim) {
    return CopyTiled(loop, from_dim, to_dim, x, y);
  }
  loop.ForEachRun([&](const auto& at, int64_t count, const auto& stride) {
    if (stride[0] == 1 && stride[1] == 1) {
      std::copy_n(x + at[0], count, y + at[1]);
      return;
    }
    for (int64_t i = 0; i < count; ++i) y[at[1] + i * stride[1]] = x[at[0] + i * stride[0]];
  });
}

// Where each part of a Concat or Split lies within a line of the whole, in bytes.
struct Parts {
  int64_t lines, line_bytes;
  std::vector<int64_t> offsets, bytes;
};

Parts PartsOf(const KernelCall& call, const Box& whole, const std::vector<Box>& parts) {
  const int64_t axis = call.op.Int("axis");
  const int rank = static_cast<int>(whole.shape.size());
  const int at = static_cast<int>(axis < 0 ? axis + rank : axis);
  const int64_t element = BytesPerElement(call.dtypes[0]);
  const AxisSplit split = SplitAtAxis(whole, at);
  Parts p{.lines = split.outer,
          .line_bytes = split.size * split.inner * element,
          .offsets = {},
          .bytes = {}};
  int64_t offset = 0;
  for (const Box& part : parts) {
    p.offsets.push_back(offset);
    p.bytes.push_back(part.shape[at] * split.inner * element);
    offset += p.bytes.back();
  }
  return p;
}

void Gather(const Parts& p, absl::Span<const void* const> parts, void* whole) {
  for (size_t t = 0; t < parts.size(); ++t) {
    for (int64_t line = 0; line < p.lines; ++line) {
      std::memcpy(static_cast<char*>(whole) + line * p.line_bytes + p.offsets[t],
                  static_cast<const char*>(parts[t]) + line * p.bytes[t], p.bytes[t]);
    }
  }
}

void Scatter(const Parts& p, const void* whole, absl::Span<void* const> parts) {
  for (size_t t = 0; t < parts.size(); ++t) {
    if (parts[t] == nullptr) continue;
    for (int64_t line = 0; line < p.lines; ++line) {
      std::memcpy(static_cast<char*>(parts[t]) + line * p.bytes[t],
                  static_cast<const char*>(whole) + line * p.line_bytes + p.offsets[t], p.bytes[t]);
    }
  }
}

}  // namespace

KernelFunction TransposeKernel(const KernelCall& call) {
  const std::vector<int64_t>& perm = call.op.Ints("perm");
  const int rank = static_cast<int>(perm.size());
  const std::vector<int64_t> in = BroadcastStrides(call.operands[0].shape, rank);
  std::vector<int64_t> permuted;
  for (int64_t p : perm) permuted.push_back(in[p]);
  const std::vector<int64_t>& sizes = call.outputs[0].shape;
  const std::vector<int64_t> out = BroadcastStrides(sizes, rank);
  const StridedLoop<2> loop = call.gradient ? StridedLoop<2>(sizes, {out, permuted})
                                            : StridedLoop<2>(sizes, {permuted, out});
  return [loop, element = BytesPerElement(call.dtypes[0]), from = call.gradient ? 2 : 0](
             Reads reads, Writes writes) {
    WithElementSize(element,
                    [&](auto unit) { CopyStrided<decltype(unit)>(loop, reads[from], writes[0]); });
    return absl::OkStatus();
  };
}

// A task has its elements in one order on both sides: only outermost dims are ever partitioned.
KernelFunction ReshapeKernel(const KernelCall& call) {
  const int64_t bytes = call.outputs[0].Volume() * BytesPerElement(call.dtypes[0]);
  const int from = call.gradient ? 2 : 0;
  return [bytes, from](Reads reads, Writes writes) {
    std::memcpy(writes[0], reads[from], bytes);
    return absl::OkStatus();
  };
}

KernelFunction ConcatKernel(const KernelCall& call) {
  const Parts parts = PartsOf(call, call.outputs[0], call.operands);
  if (!call.gradient) {
    return [parts](Reads reads, Writes writes) {
      Gather(parts, reads, writes[0]);
      return absl::OkStatus();
    };
  }
  const size_t gradient = call.operands.size() + 1;
  return [parts, gradient](Reads reads, Writes writes) {
    Scatter(parts, reads[gradient], writes);
    return absl::OkStatus();
  };
}

KernelFunction SplitKernel(const KernelCall& call) {
  const Parts parts = PartsOf(call, call.operands[0], call.outputs);
  if (!call.gradient) {
    return [parts](Reads reads, Writes writes) {
      Scatter(parts, reads[0], writes);
      return absl::OkStatus();
    };
  }
  const size_t gradients = 1 + call.outputs.size();
  return [parts, gradients](Reads reads, Writes writes) {
    Gather(parts, reads.subspan(gradients), writes[0]);
    return absl::OkStatus();
  };
}

}  // namespace isomer
