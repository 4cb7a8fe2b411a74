// AdaptiveAvgPool over one to three dims.
#include <algorithm>
#include <array>

#include "runtime/cpu/kernels.h"

namespace isomer {
namespace {

// Three spatial dims: those that a call lacks have size 1. The windows of each dim, in coordinates
// of the operand's box: window i of O over a dim of size H is [floor(i H / O), ceil((i + 1) H /
// O)).
struct AdaptivePoolShape {
  explicit AdaptivePoolShape(const KernelCall& call) : planes(call.operands[0].shape[0]) {
    const int64_t channels = call.operands[0].shape[1];
    const bool last = call.layouts.OfOperand(0) == Layout::kChannelsLast;
    (last ? lanes : planes) *= channels;
    const Box &x = call.operands[0], &y = call.outputs[0];
    const int spatial = static_cast<int>(x.shape.size()) - 2;
    for (int i = 0; i < 3; ++i) {
      const int dim = 2 + i - (3 - spatial);
      if (dim < 2) {
        windows[i] = {{0, 1}};
        continue;
      }
      in[i] = x.shape[dim];
      const int64_t size = call.declaration.operands[0][dim].value();
      const int64_t count = call.declaration.outputs[0][dim].value();
      for (int64_t o = y.origin[dim]; o < y.origin[dim] + y.shape[dim]; ++o) {
        windows[i].emplace_back(o * size / count - x.origin[dim],
                                ((o + 1) * size + count - 1) / count - x.origin[dim]);
      }
    }
  }

  // Calls f(output offset, operand offset, 1 / elements of the window), in units of lanes, for
  // every element of every window.
  template <typename Function>
  void ForEach(Function f) const {
    int64_t out = 0;
    for (int64_t plane = 0; plane < planes; ++plane) {
      for (const auto& [z0, z1] : windows[0]) {
        for (const auto& [y0, y1] : windows[1]) {
          for (const auto& [x0, x1] : windows[2]) {
            const float weight = 1.0f / static_cast<float>((z1 - z0) * (y1 - y0) * (x1 - x0));
            for (int64_t line = 0; line < (z1 - z0) * (y1 - y0); ++line) {
              const int64_t z = z0 + line / (y1 - y0), y = y0 + line % (y1 - y0);
              const int64_t row = ((plane * in[0] + z) * in[1] + y) * in[2];
              for (int64_t x = x0; x < x1; ++x) f(out, row + x, weight);
            }
            ++out;
          }
        }
      }
    }
  }

  int64_t planes, lanes = 1;  // elements that lie side by side and are of one place
  std::array<int64_t, 3> in = {1, 1, 1};
  std::array<std::vector<std::pair<int64_t, int64_t>>, 3> windows;
};

}  // namespace

KernelFunction AdaptivePoolKernel(const KernelCall& call) {
  const AdaptivePoolShape s(call);
  const int64_t written = (call.gradient ? call.operands : call.outputs)[0].Volume();
  return [s, written, gradient = call.gradient](Reads reads, Writes writes) {
    const float* from = Floats(reads[gradient ? 2 : 0]);
    float* to = Floats(writes[0]);
    std::fill_n(to, written, 0.0f);
    s.ForEach([&](int64_t out, int64_t in, float weight) {
      float* sum = to + (gradient ? in : out) * s.lanes;
      const float* x = from + (gradient ? out : in) * s.lanes;
      for (int64_t lane = 0; lane < s.lanes; ++lane) sum[lane] += weight * x[lane];
    });
    return absl::OkStatus();
  };
}

}  // namespace isomer
