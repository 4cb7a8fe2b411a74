// Elementwise operators.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "pcg/operators/operators.h"
#include "pcg/support/status_macros.h"

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
      return Max(a * -1.0, b * -1.0) * -1.0;
    case OpKind::kPow:
      return Apply(ScalarOp::kPow, a, b);
    case OpKind::kEqual:
      return Equal(a, b);
    case OpKind::kLess:
      return a < b;
    case OpKind::kLessEqual:  // At most one holds; neither where one is not a number.
      return (a < b) + Equal(a, b);
    default:
      return a + b;
  }
}

// The iteration dims of a call whose operands are broadcast as in NumPy, and how each operand is
// indexed by them: dims align from the right, and a dim that an operand lacks or has with size 1
// does not index it.
struct Broadcast {
  std::vector<std::vector<Index>> in;
  std::vector<Index> out;
};

absl::StatusOr<Broadcast> BroadcastDims(const Operator& op, absl::Span<const Shape> shapes,
                                        DeclarationBuilder* d) {
  size_t rank = 0;
  for (const Shape& shape : shapes) rank = std::max(rank, shape.size());
  Broadcast broadcast;
  broadcast.in.resize(shapes.size());
  for (size_t i = 0; i < rank; ++i) {
    const std::string name = absl::StrCat("i", i);
    // The size of operand o there; what it lacks has size 1.
    auto size = [&](size_t o) {
      const size_t missing = rank - shapes[o].size();
      return i < missing ? Extent(1) : shapes[o][i - missing];
    };
    size_t widest = 0;
    while (widest + 1 < shapes.size() && size(widest) == Extent(1)) ++widest;
    const Extent full = size(widest);
    const int dim = d->Parallel(name, full);
    for (size_t o = 0; o < shapes.size(); ++o) {
      if (size(o) != full && size(o) != Extent(1)) {
        return Mismatch(op, name, static_cast<int>(widest), full, static_cast<int>(o), size(o));
      }
      if (i + shapes[o].size() >= rank) {
        broadcast.in[o].push_back(size(o) == full ? Index(dim) : Index());
      }
    }
    broadcast.out.push_back(dim);
  }
  return broadcast;
}

}  // namespace

// Y[i..] = A[i..] op B[i..]
absl::StatusOr<Declaration> DeclareBinary(const Operator& op, absl::Span<const Shape> shapes) {
  DeclarationBuilder d(shapes);
  ISOMER_ASSIGN_OR_RETURN(const Broadcast index, BroadcastDims(op, shapes, &d));
  d.Output(index.out, BinaryBody(op, d.In(0, index.in[0]), d.In(1, index.in[1])));
  return d.Build();
}

// Y[i..] = C[i..] ? A[i..] : B[i..]
absl::StatusOr<Declaration> DeclareWhere(const Operator& op, absl::Span<const Shape> shapes) {
  DeclarationBuilder d(shapes);
  ISOMER_ASSIGN_OR_RETURN(const Broadcast index, BroadcastDims(op, shapes, &d));
  d.Output(index.out, Where(d.In(0, index.in[0]), d.In(1, index.in[1]), d.In(2, index.in[2])));
  return d.Build();
}

namespace {

// By tanh, which does not overflow.
Expr Sigmoid(const Expr& x) { return (Apply(ScalarOp::kTanh, x * 0.5) + 1.0) * 0.5; }

Expr Sqrt(const Expr& x) { return Apply(ScalarOp::kSqrt, x); }
Expr Abs(const Expr& x) { return Max(x, -x); }

// max(x, 0) + log(1 + exp(-|x|)), which does not overflow.
Expr Softplus(const Expr& x) {
  return Max(x, 0.0) + Apply(ScalarOp::kLog, Expr(1.0) + Apply(ScalarOp::kExp, -Abs(x)));
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
    case OpKind::kGeluTanh: {  // With slope sqrt(2/pi) and cubic 0.044715, close to Gelu.
      const Expr inner = (x + x * x * x * op.Number("cubic")) * op.Number("slope");
      return x * 0.5 * (Expr(1.0) + Apply(ScalarOp::kTanh, inner));
    }
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
      return -Apply(ScalarOp::kFloor, -x);
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
