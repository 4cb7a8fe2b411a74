// MatMul and Linear: sums of products.
#include <algorithm>
#include <iterator>

#include "absl/strings/cord.h"
#include "absl/strings/str_cat.h"
#include "pcg/ir/operator_facts.h"
#include "pcg/operators/operators.h"
#include "pcg/support/status_macros.h"

namespace isomer {

absl::Status Mismatch(const Operator& op, absl::string_view dim, int operand_a, const Extent& a,
                      int operand_b, const Extent& b) {
  return WithSizes(absl::InvalidArgumentError(
                       absl::StrCat(op.name(), ": dim ", dim, " is ", a.ToString(), " in operand ",
                                    operand_a, " and ", b.ToString(), " in operand ", operand_b)),
                   a, b);
}

absl::Status WithSizes(absl::Status mismatch, const Extent& a, const Extent& b) {
  mismatch.SetPayload(kSizeMismatch, absl::Cord(absl::StrCat(a.ToString(), "|", b.ToString())));
  return mismatch;
}

absl::Status ExpectRank(const Operator& op, absl::Span<const Shape> shapes, int operand, int rank) {
  if (static_cast<int>(shapes[operand].size()) == rank) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(op.name(), ": operand ", operand, " has rank ",
                                                 shapes[operand].size(), ", not ", rank));
}

absl::Status ExpectConcreteSizes(const Operator& op, absl::Span<const Shape> shapes) {
  for (const Shape& shape : shapes) {
    for (const Extent& size : shape) {
      if (!size.known()) {
        return absl::UnimplementedError(absl::StrCat(op.name(), ": needs concrete sizes"));
      }
    }
  }
  return absl::OkStatus();
}

// C[b..,m,n] = sum_k A[b..,m,k] * B[b..,k,n]
//
// The batch dims of the operands align from the right as in NumPy; an operand that lacks one (or
// has size 1 there) is used by all of it.
absl::StatusOr<Declaration> DeclareMatMul(const Operator& op, absl::Span<const Shape> shapes) {
  const Shape &a = shapes[0], &b = shapes[1];
  if (a.size() < 2 || b.size() < 2) {
    return absl::InvalidArgumentError(absl::StrCat("matmul: operands have ranks ", a.size(),
                                                   " and ", b.size(), "; both need at least 2"));
  }
  const int a_batch = static_cast<int>(a.size()) - 2, b_batch = static_cast<int>(b.size()) - 2;
  const int batch = std::max(a_batch, b_batch);
  DeclarationBuilder d(shapes);
  std::vector<Index> a_index, b_index, c_index;
  for (int i = 0; i < batch; ++i) {
    const int in_a = i - (batch - a_batch), in_b = i - (batch - b_batch);
    const Extent a_size = in_a < 0 ? Extent(1) : a[in_a], b_size = in_b < 0 ? Extent(1) : b[in_b];
    if (a_size != b_size && a_size != Extent(1) && b_size != Extent(1)) {
      return Mismatch(op, absl::StrCat("b", i), 0, a_size, 1, b_size);
    }
    const Index dim = d.Parallel(absl::StrCat("b", i), a_size == Extent(1) ? b_size : a_size);
    if (in_a >= 0) a_index.push_back(a_size == Extent(1) && b_size != Extent(1) ? Index() : dim);
    if (in_b >= 0) b_index.push_back(b_size == Extent(1) && a_size != Extent(1) ? Index() : dim);
    c_index.push_back(dim);
  }
  if (a.back() != b[b_batch]) return Mismatch(op, "k", 0, a.back(), 1, b[b_batch]);
  const int m = d.Parallel("m", a[a_batch]), n = d.Parallel("n", b.back()),
            k = d.Sum("k", a.back());
  a_index.insert(a_index.end(), {m, k});
  b_index.insert(b_index.end(), {k, n});
  c_index.insert(c_index.end(), {m, n});
  d.OutputSum(c_index, {k}, d.In(0, a_index) * d.In(1, b_index));
  return d.Build();
}

constexpr OperatorTraits kMatMulTraits = {
    .op_class = OperatorClass::kProduct,
    .examples = {{"MatMul", "matmul f32[4,6] f32[6,2]"},
                 {"MatMulBatched", "matmul f32[2,4,6] f32[2,6,2]"},
                 {"MatMulByWeight", "matmul f32[2,4,6] f32[6,2]"},
                 {"MatMulBroadcastBatch", "matmul f32[1,4,6] f32[2,6,2]"}}};

// Z[i..,n] = sum_k X[i..,k] * W[k,n]
// Y[i..,n] = f(Z[i..,n] + B[n]), B if it is given, f by `activation`
//
// One fused kernel: k is whole, for f of a partial sum is not a partial sum of f.
absl::StatusOr<Declaration> DeclareLinear(const Operator& op, absl::Span<const Shape> shapes) {
  const Shape &x = shapes[0], &w = shapes[1];
  if (x.size() < 2) return ExpectRank(op, shapes, 0, 2);  // As MatMul.
  ISOMER_RETURN_IF_ERROR(ExpectRank(op, shapes, 1, 2));
  if (x.back() != w[0]) return Mismatch(op, "k", 0, x.back(), 1, w[0]);
  const int64_t activation = op.Int("activation");
  if (activation < 0 || activation > static_cast<int64_t>(std::size(kActivationsOfLinear))) {
    return absl::InvalidArgumentError(absl::StrCat("linear: no activation ", activation));
  }
  DeclarationBuilder d(shapes);
  std::vector<int> out =
      d.Dims("i", DimKind::kParallel, absl::MakeConstSpan(x).first(x.size() - 1));
  std::vector<Index> in(out.begin(), out.end());
  const int n = d.Parallel("n", w[1]), k = d.Whole("k", x.back());
  out.push_back(n);
  in.push_back(k);
  Expr y = d.Let("Z", out, Reduction::kSum, {k}, d.In(0, in) * d.In(1, {k, n}));
  if (shapes.size() == 3) {
    ISOMER_RETURN_IF_ERROR(ExpectRank(op, shapes, 2, 1));
    if (shapes[2][0] != w[1]) return Mismatch(op, "n", 1, w[1], 2, shapes[2][0]);
    y = y + d.In(2, {n});
  }
  if (activation != 0) y = UnaryBody(kActivationsOfLinear[activation - 1], y);
  d.Output({out.begin(), out.end()}, y);
  return d.Build();
}

constexpr OperatorTraits kLinearTraits = {
    .op_class = OperatorClass::kProduct,
    .examples = {{"Linear", "linear f32[4,6] f32[6,2]"},
                 {"LinearBias", "linear f32[2,4,6] f32[6,2] f32[2]"},
                 {"LinearRelu", "linear(activation=1) f32[4,6] f32[6,2]"},
                 {"LinearGelu", "linear(activation=2) f32[4,6] f32[6,2] f32[2]"},
                 {"LinearTanh", "linear(activation=3) f32[4,6] f32[6,2] f32[2]"},
                 {"LinearSigmoid", "linear(activation=4) f32[4,6] f32[6,2] f32[2]"},
                 {"LinearSwish", "linear(activation=5) f32[4,6] f32[6,2] f32[2]"}}};

}  // namespace isomer
