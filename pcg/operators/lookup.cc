// Look-ups: one operand holds indices into a dim of another.
#include "absl/strings/str_cat.h"
#include "pcg/operators/operators.h"
#include "pcg/support/status_macros.h"

namespace isomer {

// Y[i..,h] = sum_v [v == I[i..]] W[v,h]: operand 0 is the table W, operand 1 the indices I.
absl::StatusOr<Declaration> DeclareEmbedding(const Operator& op, absl::Span<const Shape> shapes) {
  ISOMER_RETURN_IF_ERROR(ExpectRank(op, shapes, 0, 2));
  DeclarationBuilder d(shapes);
  const std::vector<int> i = d.Dims("i", DimKind::kParallel, shapes[1]);
  const int v = d.Sum("v", shapes[0][0]), h = d.Parallel("h", shapes[0][1]);
  const std::vector<Index> index(i.begin(), i.end());
  std::vector<Index> out = index;
  out.push_back(h);
  d.OutputSum(out, {v}, d.In(0, {v, h}));
  d.Select(v, 1, index);
  return d.Build();
}

constexpr OperatorTraits kEmbeddingTraits = {
    .op_class = OperatorClass::kLookUp,
    .index_operand = 1,
    .index_domain = IndexDomain::kRows,
    .examples = {{"Embedding", "embedding f32[4,6] i64[2,6]"}}};

// Y[b,h] = sum_{l,v} [v == I[b,l]] W[v,h], divided by the number of l if mean is 1.
absl::StatusOr<Declaration> DeclareEmbeddingBag(const Operator& op,
                                                absl::Span<const Shape> shapes) {
  ISOMER_RETURN_IF_ERROR(ExpectRank(op, shapes, 0, 2));
  ISOMER_RETURN_IF_ERROR(ExpectRank(op, shapes, 1, 2));
  const Extent& bag = shapes[1][1];
  DeclarationBuilder d(shapes);
  const int b = d.Parallel("b", shapes[1][0]), h = d.Parallel("h", shapes[0][1]);
  const int l = d.Sum("l", bag), v = d.Sum("v", shapes[0][0]);
  Expr row = d.In(0, {v, h});
  if (op.Int("mean") == 1) {
    if (!bag.known()) return absl::UnimplementedError("embedding_bag: needs concrete sizes");
    row = row / static_cast<double>(bag.value());
  }
  d.OutputSum({b, h}, {l, v}, row);
  d.Select(v, 1, {b, l});
  return d.Build();
}

constexpr OperatorTraits kEmbeddingBagTraits = {
    .op_class = OperatorClass::kLookUp,
    .index_operand = 1,
    .index_domain = IndexDomain::kRows,
    .examples = {{"EmbeddingBag", "embedding_bag f32[4,6] i64[4,2]"},
                 {"EmbeddingBagMean", "embedding_bag(mean=1) f32[4,6] i32[2,4]"}}};

// Y[i..,j..,k..] = sum_v [v == I[j..]] X[i..,v,k..], where v is at `axis`.
absl::StatusOr<Declaration> DeclareGather(const Operator& op, absl::Span<const Shape> shapes) {
  const Shape& x = shapes[0];
  ISOMER_ASSIGN_OR_RETURN(const int axis,
                          NormalizeAxis(op.Int("axis"), static_cast<int>(x.size())));
  DeclarationBuilder d(shapes);
  const std::vector<int> j = d.Dims("j", DimKind::kParallel, shapes[1]);
  const std::vector<Index> index(j.begin(), j.end());
  const int v = d.Sum("v", x[axis]);
  std::vector<Index> in, out;
  for (int i = 0; i < static_cast<int>(x.size()); ++i) {
    if (i == axis) {
      in.push_back(v);
      out.insert(out.end(), index.begin(), index.end());
    } else {
      in.push_back(d.Parallel(absl::StrCat("i", i), x[i]));
      out.push_back(in.back());
    }
  }
  d.OutputSum(out, {v}, d.In(0, in));
  d.Select(v, 1, index);
  return d.Build();
}

constexpr OperatorTraits kGatherTraits = {
    .op_class = OperatorClass::kLookUp,
    .takes = OperandTypes::kAnything,
    .index_operand = 1,
    .index_domain = IndexDomain::kAxis,
    .examples = {{"Gather", "gather(axis=1) f32[2,4,6] i64[2,4]"},
                 {"GatherOne", "gather(axis=0) f32[4,6] i64[]"},
                 {"GatherInts", "gather(axis=-1) i64[2,4] i64[6]"}}};

// Y[i..,n] = sum_{e,k} [e == I[i..]] X[i..,k] W[e,k,n]: each row by the matrix that its index
// (operand 2) names, as the experts of a mixture that drops no token.
absl::StatusOr<Declaration> DeclareGatherMatMul(const Operator& op,
                                                absl::Span<const Shape> shapes) {
  const Shape &x = shapes[0], &w = shapes[1], &indices = shapes[2];
  ISOMER_RETURN_IF_ERROR(ExpectRank(op, shapes, 1, 3));
  ISOMER_RETURN_IF_ERROR(ExpectRank(op, shapes, 0, static_cast<int>(indices.size()) + 1));
  for (size_t i = 0; i < indices.size(); ++i) {
    if (x[i] != indices[i]) return Mismatch(op, absl::StrCat("i", i), 0, x[i], 2, indices[i]);
  }
  if (x.back() != w[1]) return Mismatch(op, "k", 0, x.back(), 1, w[1]);
  DeclarationBuilder d(shapes);
  const std::vector<int> i = d.Dims("i", DimKind::kParallel, indices);
  const int n = d.Parallel("n", w[2]), e = d.Sum("e", w[0]), k = d.Sum("k", w[1]);
  const std::vector<Index> row(i.begin(), i.end());
  std::vector<Index> in = row, out = row;
  in.push_back(k);
  out.push_back(n);
  d.OutputSum(out, {e, k}, d.In(0, in) * d.In(1, {e, k, n}));
  d.Select(e, 2, row);
  return d.Build();
}

constexpr OperatorTraits kGatherMatMulTraits = {
    .op_class = OperatorClass::kProduct,
    .index_operand = 2,
    .index_domain = IndexDomain::kMatrices,
    .examples = {{"GatherMatMul", "gather_matmul f32[4,6] f32[4,6,8] i64[4]"},
                 {"GatherMatMulMany", "gather_matmul f32[2,4,6] f32[4,6,2] i64[2,4]"}}};

namespace {

// An error unless operand 0 is [b.., v, h] and operand `o` has b.. as its first dims.
absl::Status CheckRowsOfBatch(const Operator& op, absl::Span<const Shape> shapes, int o) {
  const Shape &table = shapes[0], &operand = shapes[o];
  if (table.size() < 3) return ExpectRank(op, shapes, 0, 3);
  const size_t batches = table.size() - 2;
  if (operand.size() < batches) return ExpectRank(op, shapes, o, static_cast<int>(batches));
  for (size_t i = 0; i < batches; ++i) {
    if (table[i] != operand[i]) {
      return Mismatch(op, i == 0 ? "b" : absl::StrCat("b", i), 0, table[i], o, operand[i]);
    }
  }
  return absl::OkStatus();
}

// The dims b.. of a table [b.., v, h].
std::vector<Index> BatchesOfRows(const Shape& table, DeclarationBuilder* d) {
  std::vector<Index> batches;
  for (size_t i = 0; i + 2 < table.size(); ++i) {
    batches.push_back(d->Parallel(i == 0 ? "b" : absl::StrCat("b", i), table[i]));
  }
  return batches;
}

std::vector<Index> WithDims(std::vector<Index> dims, std::initializer_list<int> more) {
  dims.insert(dims.end(), more.begin(), more.end());
  return dims;
}

}  // namespace

// Y[b..,j..,h] = sum_v [v == I[b..,j..]] X[b..,v,h]: each batch of rows has indices of its own.
absl::StatusOr<Declaration> DeclareGatherRows(const Operator& op, absl::Span<const Shape> shapes) {
  ISOMER_RETURN_IF_ERROR(CheckRowsOfBatch(op, shapes, 1));
  const Shape& table = shapes[0];
  DeclarationBuilder d(shapes);
  const std::vector<Index> batches = BatchesOfRows(table, &d);
  std::vector<Index> index = batches;
  for (int j :
       d.Dims("j", DimKind::kParallel, absl::MakeConstSpan(shapes[1]).subspan(batches.size()))) {
    index.push_back(j);
  }
  const int v = d.Sum("v", table.end()[-2]), h = d.Parallel("h", table.back());
  d.OutputSum(WithDims(index, {h}), {v}, d.In(0, WithDims(batches, {v, h})));
  d.Select(v, 1, index);
  return d.Build();
}

constexpr OperatorTraits kGatherRowsTraits = {
    .op_class = OperatorClass::kLookUp,
    .takes = OperandTypes::kAnything,
    .index_operand = 1,
    .index_domain = IndexDomain::kPlaces,
    .examples = {{"GatherRows", "gather_rows f32[2,6,4] i64[2,4]"},
                 {"GatherRowsMany", "gather_rows f32[4,4,2] i64[4,2,4]"},
                 {"GatherRowsOfGroups", "gather_rows f32[2,4,6,2] i64[2,4,4]"}}};

// Y[b..,j..,h] = sum_{l,v} [v == I[b..,j..,l]] W[b..,j..,l] X[b..,v,h]: sums of rows with weights
// (operand 2), as a mixture's of what a token's experts say.
absl::StatusOr<Declaration> DeclareGatherSum(const Operator& op, absl::Span<const Shape> shapes) {
  ISOMER_RETURN_IF_ERROR(CheckRowsOfBatch(op, shapes, 1));
  const Shape &table = shapes[0], &indices = shapes[1], &weights = shapes[2];
  const size_t num_batches = table.size() - 2;
  if (indices.size() <= num_batches) {
    return ExpectRank(op, shapes, 1, static_cast<int>(num_batches) + 1);
  }
  ISOMER_RETURN_IF_ERROR(ExpectRank(op, shapes, 2, static_cast<int>(indices.size())));
  for (size_t i = 0; i < indices.size(); ++i) {
    if (indices[i] == weights[i]) continue;
    return Mismatch(op, absl::StrCat("i", i), 1, indices[i], 2, weights[i]);
  }
  DeclarationBuilder d(shapes);
  const std::vector<Index> batches = BatchesOfRows(table, &d);
  std::vector<Index> out = batches;
  for (int j : d.Dims(
           "j", DimKind::kParallel,
           absl::MakeConstSpan(indices).subspan(num_batches, indices.size() - num_batches - 1))) {
    out.push_back(j);
  }
  const int h = d.Parallel("h", table.back()), l = d.Sum("l", indices.back());
  const int v = d.Sum("v", table.end()[-2]);
  const std::vector<Index> index = WithDims(out, {l});
  d.OutputSum(WithDims(out, {h}), {l, v}, d.In(0, WithDims(batches, {v, h})) * d.In(2, index));
  d.Select(v, 1, index);
  return d.Build();
}

constexpr OperatorTraits kGatherSumTraits = {
    .op_class = OperatorClass::kLookUp,
    .index_operand = 1,
    .index_domain = IndexDomain::kPlaces,
    .examples = {{"GatherSum", "gather_sum f32[2,6,4] i64[2,4,2] f32[2,4,2]"},
                 {"GatherSumOne", "gather_sum f32[4,4,2] i64[4,2] f32[4,2]"},
                 {"GatherSumOfGroups", "gather_sum f32[2,4,6,2] i64[2,4,4,2] f32[2,4,4,2]"}}};

namespace {

// An error unless the indices (operand 1) have the rank of operand 0 and, but for `axis`, no larger
// sizes. Sizes that are symbols must be equal.
absl::Status CheckElementIndices(const Operator& op, absl::Span<const Shape> shapes, int axis) {
  const Shape &x = shapes[0], &indices = shapes[1];
  ISOMER_RETURN_IF_ERROR(ExpectRank(op, shapes, 1, static_cast<int>(x.size())));
  for (int i = 0; i < static_cast<int>(x.size()); ++i) {
    if (i == axis || indices[i] == x[i]) continue;
    if (!x[i].known() || !indices[i].known() || indices[i].value() > x[i].value()) {
      return Mismatch(op, absl::StrCat("i", i), 0, x[i], 1, indices[i]);
    }
  }
  return absl::OkStatus();
}

}  // namespace

// Y[i..] = sum_v [v == I[i..]] X[i.., v at axis, ..]. Dims of which all indices are there are
// parallel; of the others X is needed as a whole.
absl::StatusOr<Declaration> DeclareGatherElements(const Operator& op,
                                                  absl::Span<const Shape> shapes) {
  const Shape& x = shapes[0];
  ISOMER_ASSIGN_OR_RETURN(const int axis,
                          NormalizeAxis(op.Int("axis"), static_cast<int>(x.size())));
  ISOMER_RETURN_IF_ERROR(CheckElementIndices(op, shapes, axis));
  DeclarationBuilder d(shapes);
  std::vector<Index> in, out;
  for (int i = 0; i < static_cast<int>(x.size()); ++i) {
    const bool parallel = i == axis || shapes[1][i] == x[i];
    out.push_back(
        d.Dim(absl::StrCat("i", i), parallel ? DimKind::kParallel : DimKind::kWhole, shapes[1][i]));
  }
  const int v = d.Sum("v", x[axis]);
  in = out;
  in[axis] = v;
  d.OutputSum(out, {v}, d.In(0, in));
  d.Select(v, 1, out);
  return d.Build();
}

constexpr OperatorTraits kGatherElementsTraits = {
    .takes = OperandTypes::kAnything,
    .index_operand = 1,
    .index_domain = IndexDomain::kAxis,
    .examples = {{"GatherElements", "gather_elements(axis=1) f32[2,4,6] i64[2,2,6]"},
                 {"GatherElementsFewer", "gather_elements(axis=-1) f32[4,6] i64[2,4]"}}};

namespace {

// The updates of one element of the output of a ScatterElements: those u for which hit is 1.
struct Updates {
  int u;
  Expr hit, value;
};

// The last one that hits it, or x. An update that a later one overwrites (same place, same index)
// is not counted.
Expr Overwritten(DeclarationBuilder* d, const std::vector<int>& out, const Expr& x,
                 const Updates& updates, const std::vector<Index>& at, int axis,
                 const Extent& count) {
  // L[.., u, ..] = sum_t [I[.., u+1+t, ..] == I[.., u, ..]]
  const int t = d->Whole("t", count);
  std::vector<Index> later = at;
  later[axis] = Shifted(at[axis] + Index(t), 1);
  std::vector<int> dims = out;
  dims[axis] = updates.u;
  const Expr overwriters = d->Let(
      "L", dims, Reduction::kSum, {t},
      d->Inside(1, later) * Equal(d->In(1, later, Outside::kZero), d->In(1, at, Outside::kZero)));
  const Expr hit = updates.hit * Equal(overwriters, 0.0);
  const Expr hits = d->Let("H", out, Reduction::kSum, {updates.u}, hit);
  const Expr written =
      d->Let("S", out, Reduction::kSum, {updates.u}, Where(hit, updates.value, 0.0));
  return Where(hits, written, x);
}

}  // namespace

// Y[p..] = X[p..] combined with U[i..] for all i.. that are p.. but at `axis`, where I[i..] is p:
//   reduction 0: replaced by the last of them;  1: added;  2: multiplied;  3: maximum;  4: minimum.
// p at `axis` is parallel, and u, the same dim of the indices, whole.
absl::StatusOr<Declaration> DeclareScatterElements(const Operator& op,
                                                   absl::Span<const Shape> shapes) {
  const Shape& x = shapes[0];
  const int rank = static_cast<int>(x.size());
  ISOMER_ASSIGN_OR_RETURN(const int axis, NormalizeAxis(op.Int("axis"), rank));
  ISOMER_RETURN_IF_ERROR(CheckElementIndices(op, shapes, axis));
  ISOMER_RETURN_IF_ERROR(ExpectRank(op, shapes, 2, rank));
  DeclarationBuilder d(shapes);
  std::vector<int> out;
  for (int i = 0; i < rank; ++i) {
    if (shapes[2][i] != shapes[1][i]) {
      return Mismatch(op, absl::StrCat("i", i), 1, shapes[1][i], 2, shapes[2][i]);
    }
    const bool parallel = i == axis || shapes[1][i] == x[i];
    out.push_back(
        d.Dim(absl::StrCat("p", i), parallel ? DimKind::kParallel : DimKind::kWhole, x[i]));
  }
  const int u = d.Whole("u", shapes[1][axis]);
  const std::vector<Index> index(out.begin(), out.end());
  std::vector<Index> at = index;
  at[axis] = u;
  const Expr old = d.In(0, index);
  const Updates updates = {
      u, d.Inside(1, at) * Equal(d.In(1, at, Outside::kZero), Coordinate(out[axis])),
      d.In(2, at, Outside::kZero)};
  auto combine = [&](Reduction reduction, const Expr& value, const Expr& neutral) {
    return d.Let("S", out, reduction, {u}, Where(updates.hit, value, neutral));
  };
  switch (op.Int("reduction")) {
    case 0:
      d.Output(index, Overwritten(&d, out, old, updates, at, axis, shapes[1][axis]));
      break;
    case 1:
      d.Output(index, old + combine(Reduction::kSum, updates.value, 0.0));
      break;
    case 2:
      d.Output(index, old * combine(Reduction::kProduct, updates.value, 1.0));
      break;
    case 3:  // The old value is neutral: it takes part anyway.
      d.Output(index, Max(combine(Reduction::kMax, updates.value, old), old));
      break;
    case 4:
      d.Output(index, -Max(combine(Reduction::kMax, -updates.value, -old), -old));
      break;
    default:
      return absl::InvalidArgumentError(absl::StrCat("scatter_elements: reduction ",
                                                     op.Int("reduction"), " is not one of 0 to 4"));
  }
  return d.Build();
}

constexpr OperatorTraits kScatterElementsTraits = {
    .takes = OperandTypes::kAnything,
    .index_operand = 1,
    .index_domain = IndexDomain::kAxis,
    .rounding = IntegerRounding::kOfSumsOfBools,
    .examples = {
        {"ScatterElements", "scatter_elements(axis=0) f32[4,6] i64[6,6] f32[6,6]"},
        {"ScatterElementsFewer", "scatter_elements(axis=1) f32[4,6] i64[2,3] f32[2,3]"},
        {"ScatterElementsAdd", "scatter_elements(axis=1,reduction=1) f32[4,6] i64[4,4] f32[4,4]"},
        {"ScatterElementsMul", "scatter_elements(axis=1,reduction=2) f32[4,6] i64[4,4] f32[4,4]"},
        {"ScatterElementsMax", "scatter_elements(axis=1,reduction=3) f32[4,6] i64[4,4] f32[4,4]"},
        {"ScatterElementsMin", "scatter_elements(axis=1,reduction=4) f32[4,6] i32[4,4] f32[4,4]"},
        {"ScatterElementsInts",
         "scatter_elements(axis=0,reduction=1) i64[4,6] i64[2,6] i64[2,6]"}}};

// Y[i..,k,..] = [k == I[i..]], where k is at `axis` of the output.
absl::StatusOr<Declaration> DeclareOneHot(const Operator& op, absl::Span<const Shape> shapes) {
  const int rank = static_cast<int>(shapes[0].size());
  ISOMER_ASSIGN_OR_RETURN(const int axis, NormalizeAxis(op.Int("axis"), rank + 1));
  const int64_t depth = op.Int("depth");
  if (depth < 1) {
    return absl::InvalidArgumentError(absl::StrCat("one_hot: depth ", depth, " is not positive"));
  }
  DeclarationBuilder d(shapes);
  const std::vector<int> i = d.Dims("i", DimKind::kParallel, shapes[0]);
  const int k = d.Parallel("k", depth);
  const std::vector<Index> index(i.begin(), i.end());
  std::vector<Index> out = index;
  out.insert(out.begin() + axis, k);
  d.Output(out, Equal(d.In(0, index), Coordinate(k)));
  return d.Build();
}

constexpr OperatorTraits kOneHotTraits = {
    .index_operand = 0,
    .index_domain = IndexDomain::kDepth,
    .axis_is_of_result = true,
    .examples = {{"OneHot", "one_hot(depth=4) i64[4,6]"},
                 {"OneHotFirstAxis", "one_hot(depth=6,axis=0) i32[4]"}}};

}  // namespace isomer
