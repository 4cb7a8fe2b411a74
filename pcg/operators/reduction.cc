// Reduction over whole dims.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "pcg/operators/operators.h"
#include "pcg/support/status_macros.h"

namespace isomer {

namespace {}  // namespace

// Y[kept..] = sum over axes: X[..], for ReduceMean divided by the number of summed elements.
// ReduceMax, ReduceMin, ReduceProd: the same with max, min, product; they need the axes whole.
absl::StatusOr<Declaration> DeclareReduction(const Operator& op, absl::Span<const Shape> shapes) {
  const Shape& x = shapes[0];
  const OpKind kind = op.kind();
  std::vector<bool> reduced(x.size(), false);
  for (int64_t axis : op.Ints("axes")) {
    ISOMER_ASSIGN_OR_RETURN(const int i, NormalizeAxis(axis, static_cast<int>(x.size())));
    reduced[i] = true;
  }
  const bool sums = kind == OpKind::kReduceSum || kind == OpKind::kReduceMean;
  DeclarationBuilder d(shapes);
  std::vector<Index> in, out;
  std::vector<int> kept, over;
  double count = 1;
  for (size_t i = 0; i < x.size(); ++i) {
    const DimKind dim_kind = !reduced[i] ? DimKind::kParallel
                             : sums      ? DimKind::kSum
                                         : DimKind::kWhole;
    const int dim = d.Dim(absl::StrCat("i", i), dim_kind, x[i]);
    in.push_back(dim);
    if (!reduced[i]) {
      out.push_back(dim);
      kept.push_back(dim);
      continue;
    }
    over.push_back(dim);
    if (op.Int("keepdims") == 1) out.push_back(Index());
    if (kind != OpKind::kReduceMean) continue;
    if (!x[i].known()) return absl::UnimplementedError("reduce_mean: needs concrete sizes");
    count *= static_cast<double>(x[i].value());
  }
  const Expr body = d.In(0, in);
  if (sums) {
    d.OutputSum(out, over, kind == OpKind::kReduceSum ? body : body / count);
  } else if (kind == OpKind::kReduceMin) {
    d.Output(out, -d.Let("M", kept, Reduction::kMax, over, -body));
  } else {
    d.OutputReduced(out, kind == OpKind::kReduceMax ? Reduction::kMax : Reduction::kProduct, over,
                    body);
  }
  return d.Build();
}

constexpr OperatorTraits kReduceSumTraits = {
    .op_class = OperatorClass::kReduction,
    .takes = OperandTypes::kNumbers,
    .examples = {{"ReduceSum", "reduce_sum(axes=[0,-1],keepdims=0) f32[4,6,2]"}}};
constexpr OperatorTraits kReduceMeanTraits = {
    .op_class = OperatorClass::kReduction,
    .takes = OperandTypes::kNumbers,
    .rounding = IntegerRounding::kAlways,
    .examples = {{"ReduceMeanKeepingDims", "reduce_mean(axes=[1]) f32[4,6,2]"}}};
constexpr OperatorTraits kReduceMaxTraits = {
    .op_class = OperatorClass::kReduction,
    .takes = OperandTypes::kNumbers,
    .examples = {{"ReduceMax", "reduce_max(axes=[1],keepdims=0) f32[4,6,2]"},
                 {"ReduceMaxInts", "reduce_max(axes=[0,1]) i64[4,6]"}}};
constexpr OperatorTraits kReduceMinTraits = {
    .op_class = OperatorClass::kReduction,
    .takes = OperandTypes::kNumbers,
    .examples = {{"ReduceMin", "reduce_min(axes=[-1]) f32[4,6]"}}};
constexpr OperatorTraits kReduceProdTraits = {
    .op_class = OperatorClass::kReduction,
    .takes = OperandTypes::kNumbers,
    .examples = {{"ReduceProd", "reduce_prod(axes=[0,2],keepdims=0) f32[2,4,2]"}}};

// Y[kept..] = the first (last) j at which X[..,j,..] is its maximum (ArgMin: minimum) over j:
//
//     M[kept..] = max_j X[..]
//     Y[kept..] = max_j (X[..] == M[kept..] ? j : 0)
//
// and for the first the same with j counted from the end.
absl::StatusOr<Declaration> DeclareArgMax(const Operator& op, absl::Span<const Shape> shapes) {
  const Shape& x = shapes[0];
  ISOMER_ASSIGN_OR_RETURN(const int axis,
                          NormalizeAxis(op.Int("axis"), static_cast<int>(x.size())));
  if (!x[axis].known()) {
    return absl::UnimplementedError(absl::StrCat(op.name(), ": needs concrete sizes"));
  }
  DeclarationBuilder d(shapes);
  std::vector<Index> in, out;
  std::vector<int> kept;
  for (int i = 0; i < static_cast<int>(x.size()); ++i) {
    if (i == axis) {
      in.push_back(d.Whole("j", x[i]));
      if (op.Int("keepdims") == 1) out.push_back(Index());
    } else {
      kept.push_back(d.Parallel(absl::StrCat("i", i), x[i]));
      in.push_back(kept.back());
      out.push_back(kept.back());
    }
  }
  const int j = in[axis].terms[0].first;
  const Expr body = op.kind() == OpKind::kArgMax ? d.In(0, in) : -d.In(0, in);
  const Expr best = Equal(body, d.Let("M", kept, Reduction::kMax, {j}, body));
  if (op.Int("last") == 1) {
    d.OutputReduced(out, Reduction::kMax, {j}, Where(best, Coordinate(j), 0.0));
  } else {
    const Expr last = static_cast<double>(x[axis].value() - 1);
    d.Output(out,
             last - d.Let("E", kept, Reduction::kMax, {j}, Where(best, last - Coordinate(j), 0.0)));
  }
  return d.Build();
}

constexpr OperatorTraits kArgMaxTraits = {
    .takes = OperandTypes::kNumbers,
    .result = ResultType::kInt64,
    .examples = {{"ArgMax", "argmax(axis=1) f32[4,6,2]"},
                 {"ArgMaxLast", "argmax(axis=-1,keepdims=0,last=1) i64[4,6]"}}};
constexpr OperatorTraits kArgMinTraits = {
    .takes = OperandTypes::kNumbers,
    .result = ResultType::kInt64,
    .examples = {{"ArgMin", "argmin(axis=0,keepdims=0) f32[4,6]"}}};

// The rank of an element is the number of elements that beat it: larger ones (smaller ones, if
// largest is 0), and equal ones before it. With j and i along `axis`:
//
//     R[..,j] = sum_i [X[..,j] < X[..,i]] + [X[..,j] == X[..,i]] * [i < j]
//     Y[..,r] = sum_j (R[..,j] == r ? X[..,j] : 0),  and the indices with j for X[..,j]
absl::StatusOr<Declaration> DeclareTopK(const Operator& op, absl::Span<const Shape> shapes) {
  const Shape& x = shapes[0];
  ISOMER_ASSIGN_OR_RETURN(const int axis,
                          NormalizeAxis(op.Int("axis"), static_cast<int>(x.size())));
  const int64_t k = op.Int("k");
  if (k < 1 || (x[axis].known() && k > x[axis].value())) {
    return absl::InvalidArgumentError(
        absl::StrCat("topk: k ", k, " of dim ", axis, " of size ", x[axis].ToString()));
  }
  if (!x[axis].known()) return absl::UnimplementedError("topk: needs concrete sizes");
  DeclarationBuilder d(shapes);
  std::vector<int> at;
  for (int i = 0; i < static_cast<int>(x.size()); ++i) {
    at.push_back(i == axis ? d.Whole("j", x[i]) : d.Parallel(absl::StrCat("i", i), x[i]));
  }
  const int j = at[axis], i = d.Whole("i", x[axis]), r = d.Whole("r", k);
  const std::vector<Index> in(at.begin(), at.end());
  std::vector<Index> other = in, out = in;
  other[axis] = i;
  out[axis] = r;
  const Expr own = d.In(0, in), rival = d.In(0, other);
  const Expr beaten = op.Int("largest") == 1 ? own < rival : rival < own;
  const Expr rank = d.Let("R", at, Reduction::kSum, {i},
                          beaten + Equal(own, rival) * (Coordinate(i) < Coordinate(j)));
  const Expr chosen = Equal(rank, Coordinate(r));
  d.OutputSum(out, {j}, Where(chosen, own, 0.0));
  d.OutputSum(out, {j}, Where(chosen, Coordinate(j), 0.0));
  return d.Build();
}

constexpr OperatorTraits kTopKTraits = {
    .takes = OperandTypes::kNumbers,
    .most_outputs = 2,
    .other_results = ResultType::kInt64,
    .is_cheap = false,  // ranks are counted
    .examples = {{"TopK", "topk(k=3) f32[4,6]"},
                 {"TopKSmallest", "topk(k=2,axis=0,largest=0) f32[6,4]"},
                 {"TopKInts", "topk(k=4) i64[4,6]"}}};

// Y[..,s,..] = sum_t X[..,s-t,..] along `axis`, where X is 0 before its first element; exclusive:
// s-t-1; reverse: s+t (s+t+1).
absl::StatusOr<Declaration> DeclareCumSum(const Operator& op, absl::Span<const Shape> shapes) {
  const Shape& x = shapes[0];
  ISOMER_ASSIGN_OR_RETURN(const int axis,
                          NormalizeAxis(op.Int("axis"), static_cast<int>(x.size())));
  DeclarationBuilder d(shapes);
  std::vector<Index> out;
  for (int i = 0; i < static_cast<int>(x.size()); ++i) {
    out.push_back(i == axis ? d.Whole("s", x[i]) : d.Parallel(absl::StrCat("i", i), x[i]));
  }
  const int t = d.Whole("t", x[axis]);
  const int64_t direction = op.Int("reverse") == 1 ? 1 : -1;
  std::vector<Index> in = out;
  in[axis] =
      Shifted(in[axis] + Index(t) * direction, op.Int("exclusive") == 1 ? direction : int64_t{0});
  d.OutputSum(out, {t}, d.In(0, in, Outside::kZero));
  return d.Build();
}

constexpr OperatorTraits kCumSumTraits = {
    .takes = OperandTypes::kNumbers,
    .is_cheap = false,
    .examples = {{"CumSum", "cumsum(axis=1) f32[4,6]"},
                 {"CumSumExclusive", "cumsum(axis=0,exclusive=1) f32[6,4]"},
                 {"CumSumReverse", "cumsum(axis=-1,reverse=1) f32[4,6]"}}};

}  // namespace isomer
