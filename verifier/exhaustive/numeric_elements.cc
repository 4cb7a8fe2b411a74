#include <algorithm>
#include <cmath>

#include "pcg/support/hash.h"
#include "verifier/exhaustive/elements.h"

namespace isomer {

double NumericElements::Sum(absl::Span<const double> values) {
  double sum = 0;
  for (double value : values) sum += value;
  return sum;
}

double NumericElements::Product(absl::Span<const double> values) {
  double product = 1;
  for (double value : values) product *= value;
  return product;
}

double NumericElements::Largest(absl::Span<const double> values) {
  return *std::max_element(values.begin(), values.end());
}

double NumericElements::Apply(ScalarOp op, absl::Span<const double> operands) {
  const double a = operands[0], b = operands.size() > 1 ? operands[1] : 0;
  switch (op) {
    case ScalarOp::kAdd:
      return a + b;
    case ScalarOp::kSub:
      return a - b;
    case ScalarOp::kMul:
      return a * b;
    case ScalarOp::kDiv:
      return a / b;
    case ScalarOp::kMax:
      return std::max(a, b);
    case ScalarOp::kPow:
      return std::pow(a, b);
    case ScalarOp::kLess:
      return a < b ? 1 : 0;
    case ScalarOp::kEqual:
      return a == b ? 1 : 0;
    case ScalarOp::kRandom: {  // Some function of two integers.
      const uint64_t bits =
          HashCombine(static_cast<uint64_t>(static_cast<int64_t>(a)), static_cast<uint64_t>(b));
      return std::ldexp(static_cast<double>(bits >> 11), -53);
    }
    case ScalarOp::kExp:
      return std::exp(a);
    case ScalarOp::kLog:
      return std::log(a);
    case ScalarOp::kSqrt:
      return std::sqrt(a);
    case ScalarOp::kTanh:
      return std::tanh(a);
    case ScalarOp::kErf:
      return std::erf(a);
    case ScalarOp::kSin:
      return std::sin(a);
    case ScalarOp::kCos:
      return std::cos(a);
    case ScalarOp::kAtan:
      return std::atan(a);
    case ScalarOp::kFloor:
      return std::floor(a);
    case ScalarOp::kRound:
      return std::nearbyint(a);
    case ScalarOp::kWhere:
      return a != 0 ? b : operands[2];
    case ScalarOp::kLoad:
    case ScalarOp::kInside:
    case ScalarOp::kConstant:
    case ScalarOp::kIndex:
      break;
  }
  return 0;
}

std::optional<int64_t> NumericElements::AsInteger(double value) {
  if (!(std::abs(value) < 1e9) || value != std::floor(value)) return std::nullopt;
  return static_cast<int64_t>(value);
}

bool NumericElements::Equal(double a, double b) {
  if (!std::isfinite(a) || !std::isfinite(b)) return !std::isfinite(a) && !std::isfinite(b);
  return std::abs(a - b) <= 1e-7 * std::max({1.0, std::abs(a), std::abs(b)});
}

}  // namespace isomer
