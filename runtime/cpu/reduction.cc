// Reductions over whole dims.
#include <algorithm>
#include <limits>

#include "runtime/cpu/kernels.h"
#include "runtime/cpu/vector_math.h"
#include "runtime/device/strided.h"
#include "runtime/device/workspace.h"

namespace isomer {
namespace {

// A loop over the operand in row-major order; the strides of the output are 0 along reduced dims.
struct ReductionShape {
  explicit ReductionShape(const KernelCall& call) : loop({}, {}), volume(call.outputs[0].Volume()) {
    const std::vector<int64_t>& in = call.operands[0].shape;
    const int rank = static_cast<int>(in.size());
    std::vector<int64_t> kept = in;
    for (int64_t axis : call.op.Ints("axes")) {
      const int i = static_cast<int>(axis < 0 ? axis + rank : axis);
      kept[i] = 1;
      count *= static_cast<double>(call.declaration.operands[0][i].value());
    }
    loop = StridedLoop<2>(in, {BroadcastStrides(in, rank), BroadcastStrides(kept, rank)});
  }

  // Calls f(offset in the operand, offset in the output).
  template <typename Function>
  void ForEach(Function f) const {
    loop.ForEachRun([&](const auto& at, int64_t run, const auto& stride) {
      for (int64_t i = 0; i < run; ++i) f(at[0] + i * stride[0], at[1] + i * stride[1]);
    });
  }

  StridedLoop<2> loop;
  int64_t volume;
  // Elements of the logical operand for each of the output; a task may have a part of them.
  double count = 1;
};

// dx = scale g, or that more.
template <bool kAdds>
KernelFunction SumGradient(const ReductionShape& s, float scale) {
  return [s, scale](Reads reads, Writes writes) {
    const float* g = Floats(reads[2]);
    float* dx = Floats(writes[0]);
    s.loop.ForEachRun([&](const auto& at, int64_t run, const auto& stride) {
      float* to = dx + at[0];
      const float* from = g + at[1];
      if (stride[0] == 1 && stride[1] == 0) {
        const float share = scale * *from;
        if constexpr (kAdds) {
          Apply([share](float sum) { return sum + share; }, run, to, to);
        } else {
          std::fill_n(to, run, share);
        }
      } else if (stride[0] == 1 && stride[1] == 1) {
        Apply([scale](float of, float sum) { return (kAdds ? sum : 0) + scale * of; }, run, to,
              from, to);
      } else {
        for (int64_t i = 0; i < run; ++i, to += stride[0], from += stride[1]) {
          *to = (kAdds ? *to : 0) + scale * *from;
        }
      }
    });
    return absl::OkStatus();
  };
}

KernelFunction SumKernel(const KernelCall& call, const ReductionShape& s, double scale) {
  if (call.gradient) {
    return call.Adds(0) ? SumGradient<true>(s, static_cast<float>(scale))
                        : SumGradient<false>(s, static_cast<float>(scale));
  }
  WorkspacePlan plan;
  const auto of_outputs = plan.Add<double>(s.volume);
  return {plan.bytes(), [=](Reads reads, Writes writes, char* workspace) {
            const float* x = Floats(reads[0]);
            double* sums = of_outputs.In(workspace);
            std::fill_n(sums, s.volume, 0.0);
            // Sums along a run are made in several lines: in one, each addition waits for the one
            // before.
            s.loop.ForEachRun([&](const auto& at, int64_t run, const auto& stride) {
              if (stride[0] == 1 && stride[1] == 0) {
                sums[at[1]] += LineSum(x + at[0], run);
                return;
              }
              if (stride[0] == 1 && stride[1] == 1) {
                AddInDouble(x + at[0], run, sums + at[1]);
                return;
              }
              for (int64_t i = 0; i < run; ++i)
                sums[at[1] + i * stride[1]] += x[at[0] + i * stride[0]];
            });
            for (int64_t i = 0; i < s.volume; ++i) {
              Floats(writes[0])[i] = static_cast<float>(scale * sums[i]);
            }
            return absl::OkStatus();
          }};
}

// `sign` 1: the maximum; -1: the minimum.
void Extrema(const ReductionShape& s, float sign, const float* x, float* y) {
  std::fill_n(y, s.volume, -sign * std::numeric_limits<float>::infinity());
  s.ForEach([&](int64_t from, int64_t to) {
    if (sign * x[from] > sign * y[to]) y[to] = x[from];
  });
}

KernelFunction ExtremumKernel(const ReductionShape& s, float sign, bool gradient) {
  if (!gradient) {
    return [s, sign](Reads reads, Writes writes) {
      Extrema(s, sign, Floats(reads[0]), Floats(writes[0]));
      return absl::OkStatus();
    };
  }
  WorkspacePlan plan;
  const auto extrema = plan.Add<float>(s.volume);
  const auto is_taken = plan.Add<bool>(s.volume);  // The first that attains it has the gradient.
  return {plan.bytes(), [=](Reads reads, Writes writes, char* workspace) {
            const float *x = Floats(reads[0]), *g = Floats(reads[2]);
            float *dx = Floats(writes[0]), *y = extrema.In(workspace);
            bool* taken = is_taken.In(workspace);
            Extrema(s, sign, x, y);
            std::fill_n(taken, s.volume, false);
            s.ForEach([&](int64_t from, int64_t to) {
              const bool takes = !taken[to] && x[from] == y[to];
              dx[from] = takes ? g[to] : 0;
              if (takes) taken[to] = true;
            });
            return absl::OkStatus();
          }};
}

// Of each output, the product of the elements that are not zero, and how many are.
struct Products {
  Products(const ReductionShape& s, const float* x, double* of_outputs, int64_t* zeros_of_outputs)
      : product(of_outputs), zeros(zeros_of_outputs) {
    std::fill_n(product, s.volume, 1.0);
    std::fill_n(zeros, s.volume, 0);
    s.ForEach([&](int64_t from, int64_t to) {
      if (x[from] == 0) {
        ++zeros[to];
      } else {
        product[to] *= x[from];
      }
    });
  }
  double* product;
  int64_t* zeros;
};

KernelFunction ProductKernel(const ReductionShape& s, bool gradient) {
  WorkspacePlan plan;
  const auto products = plan.Add<double>(s.volume);
  const auto zeros = plan.Add<int64_t>(s.volume);
  if (!gradient) {
    return {plan.bytes(), [=](Reads reads, Writes writes, char* workspace) {
              const Products p(s, Floats(reads[0]), products.In(workspace), zeros.In(workspace));
              for (int64_t i = 0; i < s.volume; ++i) {
                Floats(writes[0])[i] = p.zeros[i] > 0 ? 0 : static_cast<float>(p.product[i]);
              }
              return absl::OkStatus();
            }};
  }
  return {plan.bytes(), [=](Reads reads, Writes writes, char* workspace) {
            const float *x = Floats(reads[0]), *g = Floats(reads[2]);
            float* dx = Floats(writes[0]);
            const Products p(s, x, products.In(workspace), zeros.In(workspace));
            s.ForEach([&](int64_t from, int64_t to) {
              double others = 0;
              if (p.zeros[to] == 0) others = p.product[to] / x[from];
              if (p.zeros[to] == 1 && x[from] == 0) others = p.product[to];
              dx[from] = g[to] * static_cast<float>(others);
            });
            return absl::OkStatus();
          }};
}

}  // namespace

KernelFunction ReductionKernel(const KernelCall& call) {
  const ReductionShape s(call);
  switch (call.op.kind()) {
    case OpKind::kReduceMean:
      return SumKernel(call, s, 1 / s.count);
    case OpKind::kReduceMax:
      return ExtremumKernel(s, 1, call.gradient);
    case OpKind::kReduceMin:
      return ExtremumKernel(s, -1, call.gradient);
    case OpKind::kReduceProd:
      return ProductKernel(s, call.gradient);
    default:
      return SumKernel(call, s, 1);
  }
}

}  // namespace isomer
