// Elementwise operators, and reductions over whole dims.
#include <algorithm>
#include <cmath>

#include "runtime/cpu/kernels.h"
#include "runtime/cpu/strided.h"

namespace isomer {
namespace {

constexpr float kSqrtHalf = 0.70710678118654752f;      // 1/sqrt(2)
constexpr float kInvSqrtTwoPi = 0.39894228040143268f;  // 1/sqrt(2 pi)

template <typename Function>
KernelFunction BinaryForward(const StridedLoop<3>& loop, Function f) {
  return [loop, f](Reads reads, Writes writes) {
    const float *a = Floats(reads[0]), *b = Floats(reads[1]);
    float* y = Floats(writes[0]);
    loop.ForEachRun([&](const auto& at, int64_t count, const auto& stride) {
      const float *pa = a + at[0], *pb = b + at[1];
      float* py = y + at[2];
      for (int64_t i = 0; i < count; ++i) py[i] = f(pa[i * stride[0]], pb[i * stride[1]]);
    });
    return absl::OkStatus();
  };
}

// `da(a, b, g)` and `db(a, b, g)` are the shares of one element.
template <typename A, typename B>
KernelFunction BinaryGradient(const StridedLoop<3>& loop, int64_t a_volume, int64_t b_volume, A da,
                              B db) {
  return [loop, a_volume, b_volume, da, db](Reads reads, Writes writes) {
    // Add and Sub do not need the operands; any readable numbers do.
    const float* g = Floats(reads[3]);
    const float *a = Floats(reads[0]), *b = Floats(reads[1]);
    float *ga = Floats(writes[0]), *gb = Floats(writes[1]);
    if (ga != nullptr) std::fill(ga, ga + a_volume, 0.0f);
    if (gb != nullptr) std::fill(gb, gb + b_volume, 0.0f);
    loop.ForEachRun([&](const auto& at, int64_t count, const auto& stride) {
      for (int64_t i = 0; i < count; ++i) {
        const int64_t ia = at[0] + i * stride[0], ib = at[1] + i * stride[1];
        const float va = a == nullptr ? 0 : a[ia], vb = b == nullptr ? 0 : b[ib];
        if (ga != nullptr) ga[ia] += da(va, vb, g[at[2] + i]);
        if (gb != nullptr) gb[ib] += db(va, vb, g[at[2] + i]);
      }
    });
    return absl::OkStatus();
  };
}

}  // namespace

KernelFunction BinaryKernel(const KernelCall& call) {
  const int rank = static_cast<int>(call.outputs[0].shape.size());
  const StridedLoop<3> loop(call.outputs[0].shape, {BroadcastStrides(call.operands[0].shape, rank),
                                                    BroadcastStrides(call.operands[1].shape, rank),
                                                    BroadcastStrides(call.outputs[0].shape, rank)});
  const int64_t va = call.operands[0].Volume(), vb = call.operands[1].Volume();
  const OpKind kind = call.op.kind();
  if (!call.gradient) {
    if (kind == OpKind::kAdd) return BinaryForward(loop, [](float a, float b) { return a + b; });
    if (kind == OpKind::kSub) return BinaryForward(loop, [](float a, float b) { return a - b; });
    if (kind == OpKind::kMul) return BinaryForward(loop, [](float a, float b) { return a * b; });
    return BinaryForward(loop, [](float a, float b) { return a / b; });
  }
  const auto pass = [](float, float, float g) { return g; };
  if (kind == OpKind::kAdd) return BinaryGradient(loop, va, vb, pass, pass);
  if (kind == OpKind::kSub) {
    return BinaryGradient(loop, va, vb, pass, [](float, float, float g) { return -g; });
  }
  if (kind == OpKind::kMul) {
    return BinaryGradient(
        loop, va, vb, [](float, float b, float g) { return g * b; },
        [](float a, float, float g) { return g * a; });
  }
  return BinaryGradient(
      loop, va, vb, [](float, float b, float g) { return g / b; },
      [](float a, float b, float g) { return -g * a / (b * b); });
}

namespace {

float Logistic(float x) { return 0.5f * (std::tanh(0.5f * x) + 1); }

// `f(x)`; the gradient is `df(value, g)`, where value is what NeedsOfGradient asks for.
template <typename F, typename D>
KernelFunction Unary(const KernelCall& call, F f, D df, bool from_output) {
  const int64_t count = call.outputs[0].Volume();
  if (!call.gradient) {
    return [count, f](Reads reads, Writes writes) {
      const float* x = Floats(reads[0]);
      float* y = Floats(writes[0]);
      for (int64_t i = 0; i < count; ++i) y[i] = f(x[i]);
      return absl::OkStatus();
    };
  }
  return [count, df, from_output](Reads reads, Writes writes) {
    const float *value = Floats(reads[from_output ? 1 : 0]), *g = Floats(reads[2]);
    float* dx = Floats(writes[0]);
    for (int64_t i = 0; i < count; ++i) dx[i] = df(value == nullptr ? 0 : value[i], g[i]);
    return absl::OkStatus();
  };
}

}  // namespace

KernelFunction UnaryKernel(const KernelCall& call) {
  switch (call.op.kind()) {
    case OpKind::kScale: {
      const float factor = static_cast<float>(call.op.Number("factor"));
      return Unary(
          call, [factor](float x) { return x * factor; },
          [factor](float, float g) { return g * factor; }, false);
    }
    case OpKind::kRelu:
      return Unary(
          call, [](float x) { return std::max(x, 0.0f); },
          [](float y, float g) { return y > 0 ? g : 0.0f; }, true);
    case OpKind::kGelu:
      return Unary(
          call, [](float x) { return 0.5f * x * (1 + std::erf(x * kSqrtHalf)); },
          [](float x, float g) {
            const float density = kInvSqrtTwoPi * std::exp(-0.5f * x * x);
            return g * (0.5f * (1 + std::erf(x * kSqrtHalf)) + x * density);
          },
          false);
    case OpKind::kTanh:
      return Unary(
          call, [](float x) { return std::tanh(x); },
          [](float y, float g) { return g * (1 - y * y); }, true);
    case OpKind::kSigmoid:
      return Unary(
          call, Logistic, [](float y, float g) { return g * y * (1 - y); }, true);
    case OpKind::kSwish:
      return Unary(
          call, [](float x) { return x * Logistic(x); },
          [](float x, float g) {
            const float s = Logistic(x);
            return g * (s + x * s * (1 - s));
          },
          false);
    default:
      return Unary(
          call, [](float x) { return std::exp(x); }, [](float y, float g) { return g * y; }, true);
  }
}

// The strides of the output within a loop over the operand: 0 along reduced dims.
KernelFunction ReductionKernel(const KernelCall& call) {
  const std::vector<int64_t>& in = call.operands[0].shape;
  const int rank = static_cast<int>(in.size());
  std::vector<int64_t> kept = in;
  double divisor = 1;
  for (int64_t axis : call.op.Ints("axes")) {
    const int i = static_cast<int>(axis < 0 ? axis + rank : axis);
    kept[i] = 1;
    // The mean divides by the whole size, of which a task may sum a part.
    divisor *= static_cast<double>(call.declaration.operands[0][i].value());
  }
  const float scale =
      call.op.kind() == OpKind::kReduceMean ? static_cast<float>(1 / divisor) : 1.0f;
  const int64_t volume = call.outputs[0].Volume();
  const StridedLoop<2> loop(in, {BroadcastStrides(in, rank), BroadcastStrides(kept, rank)});
  if (!call.gradient) {
    return [loop, scale, volume](Reads reads, Writes writes) {
      const float* x = Floats(reads[0]);
      float* y = Floats(writes[0]);
      std::fill(y, y + volume, 0.0f);
      loop.ForEachRun([&](const auto& at, int64_t count, const auto& stride) {
        for (int64_t i = 0; i < count; ++i) {
          y[at[1] + i * stride[1]] += scale * x[at[0] + i * stride[0]];
        }
      });
      return absl::OkStatus();
    };
  }
  return [loop, scale](Reads reads, Writes writes) {
    const float* g = Floats(reads[2]);
    float* dx = Floats(writes[0]);
    loop.ForEachRun([&](const auto& at, int64_t count, const auto& stride) {
      for (int64_t i = 0; i < count; ++i) {
        dx[at[0] + i * stride[0]] = scale * g[at[1] + i * stride[1]];
      }
    });
    return absl::OkStatus();
  };
}

}  // namespace isomer
