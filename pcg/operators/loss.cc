// Losses: scalars, means over all samples.
#include "absl/strings/str_cat.h"
#include "pcg/operators/operators.h"
#include "pcg/support/status_macros.h"

namespace isomer {

// Operand 0 holds logits X[n..,j], operand 1 labels I[n..]:
// M[n] = max_j X;  S[n] = sum_j exp(X - M);  T[n] = sum_j [j == I[n]] X[n,j]
// Y = sum_n (log S[n] + M[n] - T[n]) / N
absl::StatusOr<Declaration> DeclareCrossEntropy(const Operator& op,
                                                absl::Span<const Shape> shapes) {
  const Shape& x = shapes[0];
  if (x.size() < 2) return ExpectRank(op, shapes, 0, 2);
  ISOMER_RETURN_IF_ERROR(ExpectRank(op, shapes, 1, static_cast<int>(x.size()) - 1));
  double count = 1;
  DeclarationBuilder d(shapes);
  std::vector<int> n;
  for (size_t i = 0; i + 1 < x.size(); ++i) {
    if (shapes[1][i] != x[i]) return Mismatch(op, absl::StrCat("n", i), 0, x[i], 1, shapes[1][i]);
    if (!x[i].known()) return absl::UnimplementedError("cross_entropy: needs concrete sizes");
    count *= static_cast<double>(x[i].value());
    n.push_back(d.Sum(absl::StrCat("n", i), x[i]));
  }
  const int j = d.Whole("j", x.back());
  std::vector<Index> sample(n.begin(), n.end()), logit = sample;
  logit.push_back(j);
  const Expr max = d.Let("M", n, Reduction::kMax, {j}, d.In(0, logit));
  const Expr sum = d.Let("S", n, Reduction::kSum, {j}, Apply(ScalarOp::kExp, d.In(0, logit) - max));
  const Expr target = d.Let("T", n, Reduction::kSum, {j}, d.In(0, logit));
  d.Select(j, 1, sample);
  d.OutputSum({}, n, (Apply(ScalarOp::kLog, sum) + max - target) / count);
  return d.Build();
}

constexpr OperatorTraits kCrossEntropyTraits = {
    .op_class = OperatorClass::kLoss,
    .index_operand = 1,
    .index_domain = IndexDomain::kClasses,
    .needs_float32 = true,
    .saved_per_row = 2,  // maximum and sum
    .examples = {{"CrossEntropy", "cross_entropy f32[2,4,6] i64[2,4]"}}};

// Y = sum_i (A[i..] - B[i..])^2 / N
absl::StatusOr<Declaration> DeclareMeanSquaredError(const Operator& op,
                                                    absl::Span<const Shape> shapes) {
  ISOMER_RETURN_IF_ERROR(ExpectRank(op, shapes, 1, static_cast<int>(shapes[0].size())));
  double count = 1;
  for (size_t i = 0; i < shapes[0].size(); ++i) {
    if (shapes[0][i] != shapes[1][i])
      return Mismatch(op, absl::StrCat("i", i), 0, shapes[0][i], 1, shapes[1][i]);
    if (!shapes[0][i].known()) return absl::UnimplementedError("mse: needs concrete sizes");
    count *= static_cast<double>(shapes[0][i].value());
  }
  DeclarationBuilder d(shapes);
  const std::vector<int> i = d.Dims("i", DimKind::kSum, shapes[0]);
  const std::vector<Index> index(i.begin(), i.end());
  const Expr difference = d.In(0, index) - d.In(1, index);
  d.OutputSum({}, i, difference * difference / count);
  return d.Build();
}

constexpr OperatorTraits kMeanSquaredErrorTraits = {
    .op_class = OperatorClass::kLoss,
    .needs_float32 = true,
    .examples = {{"MeanSquaredError", "mse f32[4,6] f32[4,6]"}}};

// Operand 0 holds logits X[i..], operand 1 the probabilities T[i..] that are their targets:
// Y = sum_i (log(1 + exp(X)) - X * T) / N, with the logarithm in a form that does not overflow
absl::StatusOr<Declaration> DeclareBinaryCrossEntropy(const Operator& op,
                                                      absl::Span<const Shape> shapes) {
  const Shape& x = shapes[0];
  ISOMER_RETURN_IF_ERROR(ExpectRank(op, shapes, 1, static_cast<int>(x.size())));
  double count = 1;
  for (size_t i = 0; i < x.size(); ++i) {
    if (x[i] != shapes[1][i]) return Mismatch(op, absl::StrCat("i", i), 0, x[i], 1, shapes[1][i]);
    if (!x[i].known()) {
      return absl::UnimplementedError("binary_cross_entropy: needs concrete sizes");
    }
    count *= static_cast<double>(x[i].value());
  }
  DeclarationBuilder d(shapes);
  const std::vector<int> i = d.Dims("i", DimKind::kSum, x);
  const std::vector<Index> index(i.begin(), i.end());
  const Expr logit = d.In(0, index);
  d.OutputSum({}, i, (UnaryBody(OpKind::kSoftplus, logit) - logit * d.In(1, index)) / count);
  return d.Build();
}

constexpr OperatorTraits kBinaryCrossEntropyTraits = {
    .op_class = OperatorClass::kLoss,
    .needs_float32 = true,
    .examples = {{"BinaryCrossEntropy", "binary_cross_entropy f32[4,6] f32[4,6]"}}};

}  // namespace isomer
