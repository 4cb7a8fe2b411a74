// Elementwise operators.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "pcg/operators/operators.h"

namespace isomer {

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
  const Expr a = d.In(0, index[0]), b = d.In(1, index[1]);
  d.Output(out, op.kind() == OpKind::kAdd   ? a + b
                : op.kind() == OpKind::kSub ? a - b
                : op.kind() == OpKind::kMul ? a * b
                                            : a / b);
  return d.Build();
}

namespace {

// By tanh, which does not overflow.
Expr Sigmoid(const Expr& x) { return (Apply(ScalarOp::kTanh, x * 0.5) + 1.0) * 0.5; }

Expr UnaryBody(const Operator& op, const Expr& x) {
  switch (op.kind()) {
    case OpKind::kScale:
      return x * op.Number("factor");
    case OpKind::kRelu:
      return Max(x, 0.0);
    case OpKind::kGelu:  // The exact form, with erf.
      return x * 0.5 * (Expr(1.0) + Apply(ScalarOp::kErf, x / Apply(ScalarOp::kSqrt, 2.0)));
    case OpKind::kTanh:
      return Apply(ScalarOp::kTanh, x);
    case OpKind::kSigmoid:
      return Sigmoid(x);
    case OpKind::kSwish:
      return x * Sigmoid(x);
    default:
      return Apply(ScalarOp::kExp, x);
  }
}

}  // namespace

// Y[i..] = f(X[i..])
absl::StatusOr<Declaration> DeclareUnary(const Operator& op, absl::Span<const Shape> shapes) {
  DeclarationBuilder d(shapes);
  const std::vector<int> i = d.Dims("i", DimKind::kParallel, shapes[0]);
  const std::vector<Index> index(i.begin(), i.end());
  d.Output(index, UnaryBody(op, d.In(0, index)));
  return d.Build();
}

}  // namespace isomer
