// Elementwise operators.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "pcg/operators/operators.h"

namespace isomer {

namespace {

Expr BinaryBody(const Operator& op, const Expr& a, const Expr& b) {
  switch (op.kind()) {
    case OpKind::kSub:
      return a - b;
    case OpKind::kMul:
      return a * b;
    case OpKind::kDiv:
      return a / b;
    case OpKind::kMaximum:
      return Max(a, b);
    case OpKind::kMinimum:
      return Where(b < a, b, a);
    case OpKind::kPow:
      return Apply(ScalarOp::kPow, a, b);
    case OpKind::kEqual:
      return Equal(a, b);
    case OpKind::kLess:
      return a < b;
    case OpKind::kLessEqual:  // Neither holds where one is not a number.
      return Max(a < b, Equal(a, b));
    default:
      return a + b;
  }
}

}  // namespace

// Y[i..] = A[i..] op B[i..], with NumPy broadcasting: dims align from the right, and a dim that an
// operand lacks or has with size 1 does not index it.
absl::StatusOr<Declaration> DeclareBinary(const Operator& op, absl::Span<const Shape> shapes) {
  const int rank = static_cast<int>(std::max(shapes[0].size(), shapes[1].size()));
  DeclarationBuilder d(shapes);
  std::vector<Index> index[2], out;
  for (int i = 0; i < rank; ++i) {
    Extent size[2];
    int at[2];
    for (int o : {0, 1}) {
      at[o] = i - rank + static_cast<int>(shapes[o].size());
      size[o] = at[o] < 0 ? Extent(1) : shapes[o][at[o]];
    }
    if (size[0] != size[1] && size[0] != Extent(1) && size[1] != Extent(1)) {
      return Mismatch(op, absl::StrCat("i", i), 0, size[0], 1, size[1]);
    }
    const Extent full = size[0] == Extent(1) ? size[1] : size[0];
    const int dim = d.Parallel(absl::StrCat("i", i), full);
    for (int o : {0, 1}) {
      if (at[o] >= 0) index[o].push_back(size[o] == full ? Index(dim) : Index());
    }
    out.push_back(dim);
  }
  d.Output(out, BinaryBody(op, d.In(0, index[0]), d.In(1, index[1])));
  return d.Build();
}

namespace {

// By tanh, which does not overflow.
Expr Sigmoid(const Expr& x) { return (Apply(ScalarOp::kTanh, x * 0.5) + 1.0) * 0.5; }

Expr Sqrt(const Expr& x) { return Apply(ScalarOp::kSqrt, x); }
Expr Negated(const Expr& x) { return x * -1.0; }
Expr Abs(const Expr& x) { return Max(x, Negated(x)); }

// max(x, 0) + log(1 + exp(-|x|)), which does not overflow.
Expr Softplus(const Expr& x) {
  return Max(x, 0.0) + Apply(ScalarOp::kLog, Expr(1.0) + Apply(ScalarOp::kExp, Negated(Abs(x))));
}

Expr Clip(const Expr& x, double low, double high) {
  return Where(x < low, low, Where(Expr(high) < x, high, x));
}

}  // namespace

Expr UnaryBody(const Operator& op, const Expr& x) {
  switch (op.kind()) {
    case OpKind::kScale:
      return x * op.Number("factor");
    case OpKind::kRelu:
      return Max(x, 0.0);
    case OpKind::kGelu:  // The exact form, with erf.
      return x * 0.5 * (Expr(1.0) + Apply(ScalarOp::kErf, x / Sqrt(2.0)));
    case OpKind::kTanh:
      return Apply(ScalarOp::kTanh, x);
    case OpKind::kSigmoid:
      return Sigmoid(x);
    case OpKind::kSwish:
      return x * Sigmoid(x);
    case OpKind::kHardSwish:  // x * HardSigmoid(x) with alpha = 1/6, beta = 1/2
      return x * Clip(x / 6.0 + 0.5, 0, 1);
    case OpKind::kHardSigmoid:
      return Clip(x * op.Number("alpha") + op.Number("beta"), 0, 1);
    case OpKind::kLeakyRelu:
      return Where(x < 0.0, x * op.Number("alpha"), x);
    case OpKind::kElu:
      return Where(x < 0.0, (Apply(ScalarOp::kExp, x) - 1.0) * op.Number("alpha"), x);
    case OpKind::kSoftplus:
      return Softplus(x);
    case OpKind::kClip:
      return Clip(x, op.Number("min"), op.Number("max"));
    case OpKind::kLog:
      return Apply(ScalarOp::kLog, x);
    case OpKind::kSqrt:
      return Sqrt(x);
    case OpKind::kReciprocal:
      return Expr(1.0) / x;
    case OpKind::kErf:
      return Apply(ScalarOp::kErf, x);
    case OpKind::kSin:
      return Apply(ScalarOp::kSin, x);
    case OpKind::kCos:
      return Apply(ScalarOp::kCos, x);
    case OpKind::kAtan:
      return Apply(ScalarOp::kAtan, x);
    case OpKind::kAbs:
      return Abs(x);
    case OpKind::kSign:
      return (Expr(0.0) < x) - (x < 0.0);
    case OpKind::kFloor:
      return Apply(ScalarOp::kFloor, x);
    case OpKind::kCeil:
      return Negated(Apply(ScalarOp::kFloor, Negated(x)));
    case OpKind::kRound:
      return Apply(ScalarOp::kRound, x);
    case OpKind::kNot:
      return Equal(x, 0.0);
    case OpKind::kCast:  // The value; the type it is stored in rounds it.
      return x;
    default:
      return Apply(ScalarOp::kExp, x);
  }
}

// Y[i..] = f(X[i..])
absl::StatusOr<Declaration> DeclareUnary(const Operator& op, absl::Span<const Shape> shapes) {
  DeclarationBuilder d(shapes);
  const std::vector<int> i = d.Dims("i", DimKind::kParallel, shapes[0]);
  const std::vector<Index> index(i.begin(), i.end());
  d.Output(index, UnaryBody(op, d.In(0, index)));
  return d.Build();
}

}  // namespace isomer
