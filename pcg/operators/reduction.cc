// Pooling over windows, and reduction over whole dims.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "pcg/operators/operators.h"
#include "pcg/support/status_macros.h"

namespace isomer {

// MaxPool: Y[n,c,y,x] = max_{r,q} X[n,c, y*stride+r-padding, x*stride+q-padding], inside X only.
// AvgPool: the sum over the window, divided by the elements of the window that are inside X, or by
// all of them if count_include_pad is 1.
absl::StatusOr<Declaration> DeclarePool(const Operator& op, absl::Span<const Shape> shapes) {
  ISOMER_RETURN_IF_ERROR(ExpectRank(op, shapes, 0, 4));
  const Shape& x = shapes[0];
  const auto &kernel = op.Ints("kernel"), &stride = op.Ints("stride"),
             &padding = op.Ints("padding");
  if (kernel.size() != 2 || stride.size() != 2 || padding.size() != 4 ||
      std::min({kernel[0], kernel[1], stride[0], stride[1]}) < 1 ||
      *std::min_element(padding.begin(), padding.end()) < 0) {
    return absl::InvalidArgumentError(absl::StrCat(
        op.name(), ": kernel and stride are [y,x] >= 1, padding is [top,left,bottom,right] >= 0"));
  }
  Extent out[2];
  for (int i = 0; i < 2; ++i) {
    if (!x[2 + i].known())
      return absl::UnimplementedError(absl::StrCat(op.name(), ": needs concrete sizes"));
    const int64_t padded = x[2 + i].value() + padding[i] + padding[2 + i];
    // A window that lies in the padding alone would have no maximum and an average of 0/0.
    if (padded < kernel[i] || padding[i] >= kernel[i] || padding[2 + i] >= kernel[i]) {
      return absl::InvalidArgumentError(absl::StrCat(
          op.name(), ": dim ", i == 0 ? "y" : "x", " of size ", x[2 + i].value(), ": kernel ",
          kernel[i], " does not fit padding ", padding[i], ",", padding[2 + i]));
    }
    out[i] = (padded - kernel[i]) / stride[i] + 1;
  }
  DeclarationBuilder d(shapes);
  const int n = d.Parallel("n", x[0]), c = d.Parallel("c", x[1]);
  const int oy = d.Spatial("y", out[0]), ox = d.Spatial("x", out[1]);
  const int r = d.Whole("r", kernel[0]), q = d.Whole("q", kernel[1]);
  const std::vector<Index> in = {n, c, Shifted(Index(oy) * stride[0] + Index(r), -padding[0]),
                                 Shifted(Index(ox) * stride[1] + Index(q), -padding[1])};
  const bool padded = *std::max_element(padding.begin(), padding.end()) > 0;
  if (op.kind() == OpKind::kMaxPool) {
    d.OutputReduced({n, c, oy, ox}, Reduction::kMax, {r, q},
                    d.In(0, in, padded ? Outside::kSkip : Outside::kNever));
  } else if (!padded || op.Int("count_include_pad") == 1) {
    d.OutputSum({n, c, oy, ox}, {r, q},
                d.In(0, in, padded ? Outside::kZero : Outside::kNever) /
                    static_cast<double>(kernel[0] * kernel[1]));
  } else {
    const Expr count = d.Let("count", {n, c, oy, ox}, Reduction::kSum, {r, q}, d.Inside(0, in));
    d.OutputSum({n, c, oy, ox}, {r, q}, d.In(0, in, Outside::kZero) / count);
  }
  return d.Build();
}

// Y[kept..] = sum over axes: X[..], for ReduceMean divided by the number of summed elements.
absl::StatusOr<Declaration> DeclareReduction(const Operator& op, absl::Span<const Shape> shapes) {
  const Shape& x = shapes[0];
  std::vector<bool> reduced(x.size(), false);
  for (int64_t axis : op.Ints("axes")) {
    ISOMER_ASSIGN_OR_RETURN(const int i, NormalizeAxis(axis, static_cast<int>(x.size())));
    reduced[i] = true;
  }
  DeclarationBuilder d(shapes);
  std::vector<Index> in, out;
  std::vector<int> over;
  double count = 1;
  for (size_t i = 0; i < x.size(); ++i) {
    const std::string name = absl::StrCat("i", i);
    const int dim = reduced[i] ? d.Sum(name, x[i]) : d.Parallel(name, x[i]);
    in.push_back(dim);
    if (!reduced[i]) {
      out.push_back(dim);
      continue;
    }
    over.push_back(dim);
    if (op.Int("keepdims") == 1) out.push_back(Index());
    if (op.kind() == OpKind::kReduceSum) continue;
    if (!x[i].known()) return absl::UnimplementedError("reduce_mean: needs concrete sizes");
    count *= static_cast<double>(x[i].value());
  }
  const Expr body = d.In(0, in);
  d.OutputSum(out, over, op.kind() == OpKind::kReduceSum ? body : body / count);
  return d.Build();
}

}  // namespace isomer
