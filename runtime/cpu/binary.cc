// Elementwise operators of two and three operands; which kernel an elementwise operator has.
#include <array>
#include <cmath>

#include "runtime/cpu/elementwise.h"
#include "runtime/cpu/kernels.h"

namespace isomer {
namespace {

KernelFunction BinaryForward(const KernelCall& call) {
  switch (call.op.kind()) {
    case OpKind::kSub:
      return ElementwiseForward<2>(call, [](auto a, auto b) { return a - b; });
    case OpKind::kMul:
      return ElementwiseForward<2>(call, [](auto a, auto b) { return a * b; });
    case OpKind::kDiv:
      return ElementwiseForward<2>(call, [](auto a, auto b) { return a / b; });
    case OpKind::kMaximum:
      return ElementwiseForward<2>(call, [](auto a, auto b) { return a > b ? a : b; });
    case OpKind::kMinimum:
      return ElementwiseForward<2>(call, [](auto a, auto b) { return a < b ? a : b; });
    case OpKind::kPow:
      return ElementwiseForward<2>(call, [](auto a, auto b) { return std::pow(a, b); });
    case OpKind::kEqual:
      return ElementwiseForward<2>(call, [](auto a, auto b) { return a == b; });
    case OpKind::kLess:
      return ElementwiseForward<2>(call, [](auto a, auto b) { return a < b; });
    case OpKind::kLessEqual:
      return ElementwiseForward<2>(call, [](auto a, auto b) { return a <= b; });
    default:
      return ElementwiseForward<2>(call, [](auto a, auto b) { return a + b; });
  }
}

using Shares = std::array<float, 2>;

KernelFunction BinaryGradient(const KernelCall& call) {
  switch (call.op.kind()) {
    case OpKind::kAdd:
      return ElementwiseGradient<2>(call, [](float, float, float g) { return Shares{g, g}; });
    case OpKind::kSub:
      return ElementwiseGradient<2>(call, [](float, float, float g) { return Shares{g, -g}; });
    case OpKind::kMul:
      return ElementwiseGradient<2>(call, [](float a, float b, float g) {
        return Shares{g * b, g * a};
      });
    case OpKind::kDiv:
      return ElementwiseGradient<2>(call, [](float a, float b, float g) {
        return Shares{g / b, -g * a / (b * b)};
      });
    case OpKind::kMaximum:  // At a tie the second has it.
      return ElementwiseGradient<2>(call, [](float a, float b, float g) {
        return a > b ? Shares{g, 0} : Shares{0, g};
      });
    case OpKind::kMinimum:
      return ElementwiseGradient<2>(call, [](float a, float b, float g) {
        return a < b ? Shares{g, 0} : Shares{0, g};
      });
    case OpKind::kPow:
      return ElementwiseGradient<2>(call, [](float a, float b, float g) {
        return Shares{g * b * std::pow(a, b - 1), g * std::pow(a, b) * std::log(a)};
      });
    default:
      return ZeroGradientKernel(call);
  }
}

}  // namespace

KernelFunction BinaryKernel(const KernelCall& call) {
  return call.gradient ? BinaryGradient(call) : BinaryForward(call);
}

KernelFunction WhereKernel(const KernelCall& call) {
  if (!call.gradient) {
    return ElementwiseForward<3>(call, [](auto c, auto a, auto b) { return c != 0 ? a : b; });
  }
  return ElementwiseGradient<3>(call, [](float c, float, float, float g) {
    return c != 0 ? std::array<float, 3>{0, g, 0} : std::array<float, 3>{0, 0, g};
  });
}

KernelFunction ElementwiseKernel(const KernelCall& call) {
  switch (call.op.kind()) {
    case OpKind::kAdd:
    case OpKind::kSub:
    case OpKind::kMul:
    case OpKind::kDiv:
    case OpKind::kMaximum:
    case OpKind::kMinimum:
    case OpKind::kPow:
    case OpKind::kEqual:
    case OpKind::kLess:
    case OpKind::kLessEqual:
      return BinaryKernel(call);
    case OpKind::kWhere:
      return WhereKernel(call);
    case OpKind::kScale:
    case OpKind::kRelu:
    case OpKind::kGelu:
    case OpKind::kGeluTanh:
    case OpKind::kTanh:
    case OpKind::kSigmoid:
    case OpKind::kExp:
    case OpKind::kSwish:
    case OpKind::kHardSwish:
    case OpKind::kHardSigmoid:
    case OpKind::kLeakyRelu:
    case OpKind::kElu:
    case OpKind::kSoftplus:
    case OpKind::kClip:
    case OpKind::kLog:
    case OpKind::kSqrt:
    case OpKind::kReciprocal:
    case OpKind::kErf:
    case OpKind::kSin:
    case OpKind::kCos:
    case OpKind::kAtan:
    case OpKind::kAbs:
    case OpKind::kSign:
    case OpKind::kFloor:
    case OpKind::kCeil:
    case OpKind::kRound:
    case OpKind::kNot:
    case OpKind::kCast:
      return UnaryKernel(call);
    default:
      return nullptr;
  }
}

KernelFunction ZeroGradientKernel(const KernelCall& call) {
  std::vector<int64_t> bytes;
  for (size_t o = 0; o < call.operands.size(); ++o) {
    bytes.push_back(call.operands[o].Volume() * BytesPerElement(call.dtypes[o]));
  }
  return [bytes](Reads, Writes writes) {
    for (size_t o = 0; o < bytes.size(); ++o) {
      if (writes[o] != nullptr) std::fill_n(static_cast<char*>(writes[o]), bytes[o], 0);
    }
    return absl::OkStatus();
  };
}

}  // namespace isomer
