// MaxPool and AvgPool over one to three dims.
#include <algorithm>

#include "runtime/cpu/kernels.h"
#include "runtime/device/workspace.h"

namespace isomer {
namespace {

// The part of a window that is inside of the image, in coordinates of the operand's box.
struct Window {
  int64_t begin[3], end[3];
  int64_t Volume() const { return (end[0] - begin[0]) * (end[1] - begin[1]) * (end[2] - begin[2]); }
};

// Three spatial dims: those that a call lacks have size 1. Offsets count places, of which each has
// `lanes` elements side by side: all channels, or one where channels are planes.
struct PoolShape {
  explicit PoolShape(const KernelCall& call) : planes(call.operands[0].shape[0]) {
    const bool last = call.layouts.OfOperand(0) == Layout::kChannelsLast;
    (last ? lanes : planes) *= call.operands[0].shape[1];
    const Box &x = call.operands[0], &y = call.outputs[0];
    const std::vector<int64_t>& padding = call.op.Ints("padding");
    const int missing = 5 - static_cast<int>(x.shape.size());
    for (int i = missing; i < 3; ++i) {
      const int spatial = i - missing;
      in[i] = x.shape[2 + spatial];
      out[i] = y.shape[2 + spatial];
      kernel[i] = call.op.Ints("kernel")[spatial];
      stride[i] = call.op.Ints("stride")[spatial];
      first[i] = y.origin[2 + spatial] * stride[i] - padding[spatial] - x.origin[2 + spatial];
    }
    count_padding =
        call.op.Find("count_include_pad") != nullptr && call.op.Int("count_include_pad") == 1;
  }

  // Calls f(plane offset, output offset, window).
  template <typename Function>
  void ForEachWindow(Function f) const {
    int64_t at = 0;
    Window w;
    // The box has all of the window that is inside of the image, so that its bounds are the
    // image's.
    auto move = [&](int i, int64_t o) {
      const int64_t begin = first[i] + o * stride[i];
      w.begin[i] = std::max<int64_t>(begin, 0);
      w.end[i] = std::min(begin + kernel[i], in[i]);
    };
    for (int64_t plane = 0; plane < planes; ++plane) {
      for (int64_t z = 0; z < out[0]; ++z) {
        move(0, z);
        for (int64_t y = 0; y < out[1]; ++y) {
          move(1, y);
          for (int64_t x = 0; x < out[2]; ++x) {
            move(2, x);
            f(plane * in[0] * in[1] * in[2], at++, w);
          }
        }
      }
    }
  }
  // Calls f(offset) for the elements of a window.
  template <typename Function>
  void ForEachElement(int64_t plane, const Window& w, Function f) const {
    for (int64_t z = w.begin[0]; z < w.end[0]; ++z) {
      for (int64_t y = w.begin[1]; y < w.end[1]; ++y) {
        const int64_t row = plane + (z * in[1] + y) * in[2];
        for (int64_t i = row + w.begin[2]; i < row + w.end[2]; ++i) f(i);
      }
    }
  }
  int64_t ElementsIn() const { return planes * in[0] * in[1] * in[2] * lanes; }

  int64_t planes, lanes = 1;
  int64_t in[3] = {1, 1, 1}, out[3] = {1, 1, 1}, kernel[3] = {1, 1, 1}, stride[3] = {1, 1, 1};
  int64_t first[3] = {0, 0, 0};  // where the first window begins
  bool count_padding;
};

int64_t FirstOf(const PoolShape& s, int64_t plane, const Window& w) {
  return plane + (w.begin[0] * s.in[1] + w.begin[1]) * s.in[2] + w.begin[2];
}

// The offset of the first maximum of a window of one lane.
int64_t ArgMax(const PoolShape& s, const float* x, int64_t plane, const Window& w) {
  int64_t best = FirstOf(s, plane, w);
  float largest = x[best];
  // Without a branch, which no predictor would foresee.
  s.ForEachElement(plane, w, [&](int64_t i) {
    const int64_t is_larger = x[i] > largest ? -1 : 0;
    best += (i - best) & is_larger;
    largest = std::max(largest, x[i]);
  });
  return best;
}

// y = the largest of a window, lane by lane.
void MaxOfLanes(const PoolShape& s, const float* x, int64_t plane, const Window& w, float* y) {
  std::copy_n(x + FirstOf(s, plane, w) * s.lanes, s.lanes, y);
  s.ForEachElement(plane, w, [&](int64_t i) {
    const float* at = x + i * s.lanes;
    for (int64_t lane = 0; lane < s.lanes; ++lane) y[lane] = std::max(y[lane], at[lane]);
  });
}

void MaxPoolForward(const PoolShape& s, const float* x, float* out) {
  s.ForEachWindow([&](int64_t plane, int64_t at, const Window& w) {
    if (s.lanes > 1) return MaxOfLanes(s, x, plane, w, out + at * s.lanes);
    float largest = x[FirstOf(s, plane, w)];
    s.ForEachElement(plane, w, [&](int64_t i) { largest = std::max(largest, x[i]); });
    out[at] = largest;
  });
}

// `largest`, `left`: of lanes, to work with.
void MaxPoolGradient(const PoolShape& s, const float* x, const float* g, float* dx, float* largest,
                     float* left) {
  std::fill(dx, dx + s.ElementsIn(), 0.0f);
  s.ForEachWindow([&](int64_t plane, int64_t at, const Window& w) {
    if (s.lanes == 1) {
      dx[ArgMax(s, x, plane, w)] += g[at];
      return;
    }
    // The first that is the largest has the gradient, and nothing is left of it for others.
    MaxOfLanes(s, x, plane, w, largest);
    std::copy_n(g + at * s.lanes, s.lanes, left);
    s.ForEachElement(plane, w, [=](int64_t i) {
      const float* from = x + i * s.lanes;
      float* to = dx + i * s.lanes;
#pragma GCC ivdep
      for (int64_t lane = 0; lane < s.lanes; ++lane) {
        const float share = from[lane] == largest[lane] ? left[lane] : 0;
        to[lane] += share;
        left[lane] = from[lane] == largest[lane] ? 0 : left[lane];
      }
    });
  });
}

KernelFunction MaxPool(const PoolShape& s, bool gradient) {
  if (!gradient) {
    return [s](Reads reads, Writes writes) {
      MaxPoolForward(s, Floats(reads[0]), Floats(writes[0]));
      return absl::OkStatus();
    };
  }
  WorkspacePlan plan;
  const auto largest = plan.Add<float>(s.lanes), left = plan.Add<float>(s.lanes);
  return {plan.bytes(), [=](Reads reads, Writes writes, char* workspace) {
            MaxPoolGradient(s, Floats(reads[0]), Floats(reads[2]), Floats(writes[0]),
                            largest.In(workspace), left.In(workspace));
            return absl::OkStatus();
          }};
}

KernelFunction AvgPool(const PoolShape& s, bool gradient) {
  auto weight = [s](const Window& w) {
    const int64_t all = s.kernel[0] * s.kernel[1] * s.kernel[2];
    return 1.0f / static_cast<float>(s.count_padding ? all : w.Volume());
  };
  if (gradient) {
    return [s, weight](Reads reads, Writes writes) {
      const float* g = Floats(reads[2]);
      float* dx = Floats(writes[0]);
      std::fill(dx, dx + s.ElementsIn(), 0.0f);
      s.ForEachWindow([&](int64_t plane, int64_t at, const Window& window) {
        const float w = weight(window);
        if (s.lanes == 1) {
          const float share = w * g[at];
          s.ForEachElement(plane, window, [&](int64_t i) { dx[i] += share; });
          return;
        }
        s.ForEachElement(plane, window, [&](int64_t i) {
          for (int64_t l = 0; l < s.lanes; ++l) dx[i * s.lanes + l] += w * g[at * s.lanes + l];
        });
      });
      return absl::OkStatus();
    };
  }
  return [s, weight](Reads reads, Writes writes) {
    const float* x = Floats(reads[0]);
    float* y = Floats(writes[0]);
    s.ForEachWindow([&](int64_t plane, int64_t at, const Window& window) {
      const float w = weight(window);
      if (s.lanes == 1) {
        float sum = 0;
        s.ForEachElement(plane, window, [&](int64_t i) { sum += x[i]; });
        y[at] = w * sum;
        return;
      }
      float* sums = y + at * s.lanes;
      std::fill_n(sums, s.lanes, 0.0f);
      s.ForEachElement(plane, window, [&](int64_t i) {
        for (int64_t l = 0; l < s.lanes; ++l) sums[l] += x[i * s.lanes + l];
      });
      for (int64_t l = 0; l < s.lanes; ++l) sums[l] *= w;
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
