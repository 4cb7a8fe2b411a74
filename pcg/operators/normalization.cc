// Softmax, LayerNorm, BatchNorm: the normalised dim is needed as a whole.
#include "pcg/operators/operators.h"
#include "pcg/support/status_macros.h"

namespace isomer {

// M[..] = max_j X[..,j];  S[..] = sum_j exp(X[..,j] - M[..]);  Y[..,j] = exp(X[..,j] - M[..]) /
// S[..]
absl::StatusOr<Declaration> DeclareSoftmax(const Operator& op, absl::Span<const Shape> shapes) {
  const Shape& x = shapes[0];
  ISOMER_ASSIGN_OR_RETURN(const int axis,
                          NormalizeAxis(op.Int("axis"), static_cast<int>(x.size())));
  DeclarationBuilder d(shapes);
  std::vector<int> rest;
  std::vector<Index> index;
  int j = -1;
  for (int i = 0; i < static_cast<int>(x.size()); ++i) {
    const int dim =
        i == axis ? (j = d.Whole("j", x[i])) : d.Parallel("i" + std::to_string(i), x[i]);
    if (i != axis) rest.push_back(dim);
    index.push_back(dim);
  }
  const Expr max = d.Let("M", rest, Reduction::kMax, {j}, d.In(0, index));
  const Expr numerator = Apply(ScalarOp::kExp, d.In(0, index) - max);
  const Expr sum = d.Let("S", rest, Reduction::kSum, {j}, numerator);
  d.Output(index, numerator / sum);
  return d.Build();
}

// mean[..] = sum_h X[..,h] / H;  var[..] = sum_h (X[..,h] - mean[..])^2 / H
// Y[..,h] = (X[..,h] - mean[..]) / sqrt(var[..] + epsilon) * G[h] + B[h]
absl::StatusOr<Declaration> DeclareLayerNorm(const Operator& op, absl::Span<const Shape> shapes) {
  const Shape& x = shapes[0];
  if (x.empty()) return ExpectRank(op, shapes, 0, 1);
  ISOMER_RETURN_IF_ERROR(ExpectRank(op, shapes, 1, 1));
  ISOMER_RETURN_IF_ERROR(ExpectRank(op, shapes, 2, 1));
  for (int o : {1, 2}) {
    if (shapes[o][0] != x.back()) return Mismatch(op, "h", 0, x.back(), o, shapes[o][0]);
  }
  if (!x.back().known()) return absl::UnimplementedError("layer_norm: needs a concrete size of h");
  DeclarationBuilder d(shapes);
  const std::vector<int> rest =
      d.Dims("i", DimKind::kParallel, absl::MakeConstSpan(x).first(x.size() - 1));
  const int h = d.Whole("h", x.back());
  std::vector<Index> index(rest.begin(), rest.end());
  index.push_back(h);
  const Expr size = static_cast<double>(x.back().value());
  const Expr total = d.Let("total", rest, Reduction::kSum, {h}, d.In(0, index));
  const Expr centred = d.In(0, index) - total / size;
  const Expr squares = d.Let("squares", rest, Reduction::kSum, {h}, centred * centred);
  d.Output(index,
           centred / Apply(ScalarOp::kSqrt, squares / size + op.Number("epsilon")) * d.In(1, {h}) +
               d.In(2, {h}));
  return d.Build();
}

// The inference form, with given statistics (operands: X, gamma, beta, mean, variance):
// Y[n,c,..] = (X[n,c,..] - mean[c]) / sqrt(variance[c] + epsilon) * gamma[c] + beta[c]
absl::StatusOr<Declaration> DeclareBatchNorm(const Operator& op, absl::Span<const Shape> shapes) {
  const Shape& x = shapes[0];
  if (x.size() < 2) return ExpectRank(op, shapes, 0, 2);
  for (int o = 1; o < 5; ++o) {
    ISOMER_RETURN_IF_ERROR(ExpectRank(op, shapes, o, 1));
    if (shapes[o][0] != x[1]) return Mismatch(op, "c", 0, x[1], o, shapes[o][0]);
  }
  DeclarationBuilder d(shapes);
  const int n = d.Parallel("n", x[0]), c = d.Parallel("c", x[1]);
  std::vector<Index> index = {n, c};
  for (int dim : d.Dims("i", DimKind::kParallel, absl::MakeConstSpan(x).subspan(2)))
    index.push_back(dim);
  const Expr deviation = Apply(ScalarOp::kSqrt, d.In(4, {c}) + op.Number("epsilon"));
  d.Output(index, (d.In(0, index) - d.In(3, {c})) / deviation * d.In(1, {c}) + d.In(2, {c}));
  return d.Build();
}

}  // namespace isomer
