// MaxPool and AvgPool over two dims.
#include <algorithm>
#include <limits>

#include "runtime/cpu/kernels.h"

namespace isomer {
namespace {

struct PoolShape {
  explicit PoolShape(const KernelCall& call)
      : planes(call.operands[0].shape[0] * call.operands[0].shape[1]),
        kernel(call.op.Ints("kernel")),
        stride(call.op.Ints("stride")),
        padding(call.op.Ints("padding")) {
    for (int i : {0, 1}) {
      in[i] = call.operands[0].shape[2 + i];
      out[i] = call.outputs[0].shape[2 + i];
    }
    count_padding =
        call.op.Find("count_include_pad") != nullptr && call.op.Int("count_include_pad") == 1;
  }

  // Calls f(plane, output offset, window [y0,y1) x [x0,x1) inside of the input).
  template <typename Function>
  void ForEachWindow(Function f) const {
    for (int64_t plane = 0; plane < planes; ++plane) {
      for (int64_t y = 0; y < out[0]; ++y) {
        const int64_t top = y * stride[0] - padding[0];
        const int64_t y0 = std::max<int64_t>(top, 0), y1 = std::min(top + kernel[0], in[0]);
        for (int64_t x = 0; x < out[1]; ++x) {
          const int64_t left = x * stride[1] - padding[1];
          f(plane * in[0] * in[1], (plane * out[0] + y) * out[1] + x, y0, y1,
            std::max<int64_t>(left, 0), std::min(left + kernel[1], in[1]));
        }
      }
    }
  }

  int64_t planes, in[2], out[2];
  std::vector<int64_t> kernel, stride, padding;
  bool count_padding;
};

// The offset of the first maximum of a window.
int64_t ArgMax(const PoolShape& s, const float* x, int64_t plane, int64_t y0, int64_t y1,
               int64_t x0, int64_t x1) {
  int64_t best = plane + y0 * s.in[1] + x0;
  for (int64_t y = y0; y < y1; ++y) {
    for (int64_t i = plane + y * s.in[1] + x0; i < plane + y * s.in[1] + x1; ++i) {
      if (x[i] > x[best]) best = i;
    }
  }
  return best;
}

KernelFunction MaxPool(const PoolShape& s, bool gradient) {
  if (!gradient) {
    return [s](Reads reads, Writes writes) {
      const float* x = Floats(reads[0]);
      float* out = Floats(writes[0]);
      s.ForEachWindow([&](int64_t plane, int64_t at, int64_t y0, int64_t y1, int64_t x0,
                          int64_t x1) { out[at] = x[ArgMax(s, x, plane, y0, y1, x0, x1)]; });
      return absl::OkStatus();
    };
  }
  return [s](Reads reads, Writes writes) {
    const float *x = Floats(reads[0]), *g = Floats(reads[2]);
    float* dx = Floats(writes[0]);
    std::fill(dx, dx + s.planes * s.in[0] * s.in[1], 0.0f);
    s.ForEachWindow([&](int64_t plane, int64_t at, int64_t y0, int64_t y1, int64_t x0, int64_t x1) {
      dx[ArgMax(s, x, plane, y0, y1, x0, x1)] += g[at];
    });
    return absl::OkStatus();
  };
}

KernelFunction AvgPool(const PoolShape& s, bool gradient) {
  auto weight = [s](int64_t y0, int64_t y1, int64_t x0, int64_t x1) {
    return 1.0f /
           static_cast<float>(s.count_padding ? s.kernel[0] * s.kernel[1] : (y1 - y0) * (x1 - x0));
  };
  return [s, weight, gradient](Reads reads, Writes writes) {
    const float* from = Floats(reads[gradient ? 2 : 0]);
    float* to = Floats(writes[0]);
    if (gradient) std::fill(to, to + s.planes * s.in[0] * s.in[1], 0.0f);
    s.ForEachWindow([&](int64_t plane, int64_t at, int64_t y0, int64_t y1, int64_t x0, int64_t x1) {
      const float w = weight(y0, y1, x0, x1);
      float sum = 0;
      for (int64_t y = y0; y < y1; ++y) {
        for (int64_t i = plane + y * s.in[1] + x0; i < plane + y * s.in[1] + x1; ++i) {
          if (gradient) {
            to[i] += w * from[at];
          } else {
            sum += from[i];
          }
        }
      }
      if (!gradient) to[at] = w * sum;
    });
    return absl::OkStatus();
  };
}

}  // namespace

KernelFunction PoolKernel(const KernelCall& call) {
  const PoolShape shape(call);
  return call.op.kind() == OpKind::kMaxPool ? MaxPool(shape, call.gradient)
                                            : AvgPool(shape, call.gradient);
}

}  // namespace isomer
