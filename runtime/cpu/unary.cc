// Elementwise operators of one operand, and Dropout.
#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <numbers>
#include <type_traits>

#include "pcg/evaluation/number.h"
#include "pcg/ir/finite_cast.h"
#include "runtime/cpu/elementwise.h"
#include "runtime/cpu/kernels.h"
#include "runtime/cpu/vector_math.h"

namespace isomer {
namespace {

constexpr float kInvSqrtTwoPi = 0.39894228040143268f;  // 1/sqrt(2 pi)
constexpr float kTwoOverSqrtPi = static_cast<float>(2 * std::numbers::inv_sqrtpi);

template <typename T>
T Clamped(T x, double low, double high) {
  return x < static_cast<T>(low)    ? static_cast<T>(low)
         : x > static_cast<T>(high) ? static_cast<T>(high)
                                    : x;
}

// y = f(x). The gradient is `df(value, g)`, where value is what NeedsOfGradient asks for: x, or y
// if `from_output`.
template <typename F, typename D>
KernelFunction Unary(const KernelCall& call, F f, D df, bool from_output = false) {
  if (!call.gradient) return ElementwiseForward<1>(call, f);
  const int64_t count = call.outputs[0].Volume();
  return [count, df, from_output, adds = call.Adds(0)](Reads reads, Writes writes) {
    const float *value = Floats(reads[from_output ? 1 : 0]), *g = Floats(reads[2]);
    float* dx = Floats(writes[0]);
    if (adds && value != nullptr) {
      Apply([df](float x, float of, float sum) { return sum + df(x, of); }, count, dx, value, g,
            dx);
    } else if (adds) {
      Apply([df](float of, float sum) { return sum + df(0.0f, of); }, count, dx, g, dx);
    } else if (value != nullptr) {
      Apply(df, count, dx, value, g);
    } else {
      Apply([df](float of) { return df(0.0f, of); }, count, dx, g);
    }
    return absl::OkStatus();
  };
}

// Constant between jumps.
template <typename F>
KernelFunction Step(const KernelCall& call, F f) {
  return call.gradient ? ZeroGradientKernel(call) : ElementwiseForward<1>(call, f);
}

KernelFunction CastKernel(const KernelCall& call) {
  if (!call.gradient && IsFiniteCast(call.op)) {
    const float most = static_cast<float>(LargestNumber(call.output_dtypes[0]));
    return ElementwiseForward<1>(call, [most](auto x) {
      const auto limit = static_cast<decltype(x)>(most);
      return std::isinf(static_cast<double>(x)) ? x : x < -limit ? -limit : x > limit ? limit : x;
    });
  }
  if (!call.gradient) return ElementwiseForward<1>(call, [](auto x) { return x; });
  const int64_t count = call.outputs[0].Volume();
  return [count, from = call.output_dtypes[0], to = call.dtypes[0]](Reads reads, Writes writes) {
    constexpr int64_t kBlock = 256;
    float block[kBlock];
    for (int64_t begin = 0; begin < count; begin += kBlock) {
      const int64_t size = std::min(kBlock, count - begin);
      LoadElements(from, static_cast<const char*>(reads[2]) + begin * BytesPerElement(from), size,
                   block);
      StoreElements(block, size, to, static_cast<char*>(writes[0]) + begin * BytesPerElement(to));
    }
    return absl::OkStatus();
  };
}

// x > 0 ? x : 0 without the jump that the compiler makes of that: signs of activations are random,
// and a processor that guesses them is eight times slower.
template <typename Number>
Number Positive(Number x) {
  using Bits = std::conditional_t<sizeof(Number) == sizeof(uint32_t), uint32_t, uint64_t>;
  return std::bit_cast<Number>(std::bit_cast<Bits>(x) & -static_cast<Bits>(x > 0));
}

KernelFunction ActivationKernel(const KernelCall& call) {
  switch (call.op.kind()) {
    case OpKind::kRelu:
      return Unary(
          call, [](auto x) { return Positive(x); },
          [](float y, float g) { return y > 0 ? g : 0.0f; }, true);
    case OpKind::kGelu:
      return Unary(
          call, [](auto x) { return x * NormalCdf(x); },
          [](float x, float g) {
            const float density = kInvSqrtTwoPi * Exp(-0.5f * x * x);
            return g * (NormalCdf(x) + x * density);
          });
    case OpKind::kGeluTanh: {
      // (1 + tanh(z)) / 2 is Logistic(2 z).
      const double slope = 2 * call.op.Number("slope"), cubic = call.op.Number("cubic");
      return Unary(
          call,
          [=](auto x) {
            using Number = decltype(x);
            return x * Logistic(Number(slope) * (x + Number(cubic) * x * x * x));
          },
          [a = static_cast<float>(slope), b = static_cast<float>(cubic)](float x, float g) {
            const float s = Logistic(a * (x + b * x * x * x));
            return g * (s + x * s * (1 - s) * a * (1 + 3 * b * x * x));
          });
    }
    case OpKind::kSwish:
      return Unary(
          call, [](auto x) { return x * Logistic(x); },
          [](float x, float g) {
            const float s = Logistic(x);
            return g * (s + x * s * (1 - s));
          });
    case OpKind::kHardSwish:
      return Unary(
          call, [](auto x) { return x * Clamped(x / 6 + decltype(x)(0.5), 0, 1); },
          [](float x, float g) { return x < -3  ? 0
                                        : x > 3 ? g
                                                : g * (x / 3 + 0.5f); });
    case OpKind::kHardSigmoid: {
      const float alpha = static_cast<float>(call.op.Number("alpha"));
      const float beta = static_cast<float>(call.op.Number("beta"));
      return Unary(
          call, [=](auto x) { return Clamped(x * alpha + beta, 0, 1); },
          [=](float x, float g) {
            const float y = x * alpha + beta;
            return y < 0 || y > 1 ? 0 : g * alpha;
          });
    }
    case OpKind::kLeakyRelu: {
      const float alpha = static_cast<float>(call.op.Number("alpha"));
      return Unary(
          call, [alpha](auto x) { return x < 0 ? x * alpha : x; },
          [alpha](float x, float g) { return x < 0 ? g * alpha : g; });
    }
    case OpKind::kElu: {
      const float alpha = static_cast<float>(call.op.Number("alpha"));
      return Unary(
          call, [alpha](auto x) { return x < 0 ? alpha * std::expm1(x) : x; },
          [alpha](float x, float g) { return x < 0 ? g * alpha * Exp(x) : g; });
    }
    default:  // Softplus.
      return Unary(
          call, [](auto x) { return (x > 0 ? x : 0) + std::log1p(std::exp(-std::abs(x))); },
          [](float x, float g) { return g * Logistic(x); });
  }
}

}  // namespace

KernelFunction UnaryKernel(const KernelCall& call) {
  switch (call.op.kind()) {
    case OpKind::kScale: {
      const double factor = call.op.Number("factor");
      return Unary(
          call, [factor](auto x) { return x * static_cast<decltype(x)>(factor); },
          [factor](float, float g) { return g * static_cast<float>(factor); });
    }
    case OpKind::kClip: {
      const double low = call.op.Number("min"), high = call.op.Number("max");
      return Unary(
          call, [=](auto x) { return Clamped(x, low, high); },
          [=](float x, float g) {
            return x < static_cast<float>(low) || x > static_cast<float>(high) ? 0 : g;
          });
    }
    case OpKind::kTanh:
      return Unary(
          call, [](auto x) { return Tanh(x); }, [](float y, float g) { return g * (1 - y * y); },
          true);
    case OpKind::kSigmoid:
      return Unary(
          call, [](auto x) { return Logistic(x); },
          [](float y, float g) { return g * y * (1 - y); }, true);
    case OpKind::kExp:
      return Unary(
          call, [](auto x) { return Exp(x); }, [](float y, float g) { return g * y; }, true);
    case OpKind::kLog:
      return Unary(
          call, [](auto x) { return std::log(x); }, [](float x, float g) { return g / x; });
    case OpKind::kSqrt:
      return Unary(
          call, [](auto x) { return std::sqrt(x); },
          [](float x, float g) { return g / (2 * std::sqrt(x)); });
    case OpKind::kReciprocal:
      return Unary(
          call, [](auto x) { return 1 / x; }, [](float x, float g) { return -g / (x * x); });
    case OpKind::kErf:
      return Unary(
          call, [](auto x) { return std::erf(x); },
          [](float x, float g) { return g * kTwoOverSqrtPi * Exp(-x * x); });
    case OpKind::kSin:
      return Unary(
          call, [](auto x) { return std::sin(x); },
          [](float x, float g) { return g * std::cos(x); });
    case OpKind::kCos:
      return Unary(
          call, [](auto x) { return std::cos(x); },
          [](float x, float g) { return -g * std::sin(x); });
    case OpKind::kAtan:
      return Unary(
          call, [](auto x) { return std::atan(x); },
          [](float x, float g) { return g / (1 + x * x); });
    case OpKind::kAbs:
      return Unary(
          call, [](auto x) { return std::abs(x); },
          [](float x, float g) { return x > 0 ? g : -g; });
    case OpKind::kSign:
      return Step(call, [](auto x) { return decltype(x)((x > 0) - (x < 0)); });
    case OpKind::kFloor:
      return Step(call, [](auto x) { return std::floor(x); });
    case OpKind::kCeil:
      return Step(call, [](auto x) { return std::ceil(x); });
    case OpKind::kRound:  // The default mode is half to even.
      return Step(call, [](auto x) { return std::nearbyint(x); });
    case OpKind::kNot:
      return Step(call, [](auto x) { return x == 0; });
    case OpKind::kCast:
      return CastKernel(call);
    default:
      return ActivationKernel(call);
  }
}

// The mask is a function of the seed and of the element's place in the logical tensor.
KernelFunction DropoutKernel(const KernelCall& call) {
  const double rate = call.op.Number("rate");
  const double salt = static_cast<double>(call.op.Int("salt"));
  const Box box = call.outputs[0];
  const int rank = static_cast<int>(box.shape.size());
  std::vector<int64_t> whole;
  for (const Extent& size : call.declaration.outputs[0]) whole.push_back(size.value());
  int64_t origin = 0, stride = 1;
  std::vector<int64_t> logical(rank, 0);
  for (int i = rank - 1; i >= 0; --i) {
    logical[i] = stride;
    origin += box.origin[i] * stride;
    stride *= whole[i];
  }
  // Elements as they lie, each with its place in the logical tensor.
  const bool last = call.layouts.OfOutput(0) == Layout::kChannelsLast;
  if (last) std::rotate(logical.begin() + 1, logical.begin() + 2, logical.end());
  const Box lying = InMemory(box, call.layouts.OfOutput(0));
  const StridedLoop<2> loop(lying.shape, {logical, BroadcastStrides(lying.shape, rank)});
  return [=, from = call.gradient ? 3 : 0](Reads reads, Writes writes) {
    const float* x = Floats(reads[from]);
    float* y = Floats(writes[0]);
    const double seed = static_cast<double>(*Indices(reads[1])) + salt;
    loop.ForEachRun([&](const auto& at, int64_t count, const auto& step) {
      for (int64_t i = 0; i < count; ++i) {
        const double place = static_cast<double>(origin + at[0] + i * step[0]);
        const bool kept = Number<double>::Random(seed, place) >= rate;
        y[at[1] + i] = kept ? x[at[1] + i] / static_cast<float>(1 - rate) : 0.0f;
      }
    });
    return absl::OkStatus();
  };
}

}  // namespace isomer
