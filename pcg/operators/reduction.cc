// Reduction over whole dims.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "pcg/operators/operators.h"
#include "pcg/support/status_macros.h"

namespace isomer {

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
