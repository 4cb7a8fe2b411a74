// Pooling: one value for each window.
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "pcg/operators/operators.h"
#include "pcg/operators/window.h"
#include "pcg/support/status_macros.h"

namespace isomer {

// MaxPool: Y[n,c,y,x] = max_{r,q} X[n,c, y*stride+r-padding, x*stride+q-padding], inside X only.
// AvgPool: the sum over the window, divided by the elements of the window that are inside X, or by
// all of them if count_include_pad is 1.
// With one spatial dim, x, or three, z y x, alike.
absl::StatusOr<Declaration> DeclarePool(const Operator& op, absl::Span<const Shape> shapes) {
  const Shape& x = shapes[0];
  const int rank = static_cast<int>(op.Ints("kernel").size());
  if (rank < 1 || rank > 3) {
    return absl::InvalidArgumentError(
        absl::StrCat(op.name(), ": a kernel of ", rank, " dims, not 1 to 3"));
  }
  ISOMER_RETURN_IF_ERROR(ExpectRank(op, shapes, 0, rank + 2));
  ISOMER_RETURN_IF_ERROR(ExpectConcreteSizes(op, shapes));
  ISOMER_ASSIGN_OR_RETURN(const Windows windows, ReadWindows(op, op.Ints("kernel")));
  double elements = 1;
  for (int i = 0; i < rank; ++i) {
    elements *= static_cast<double>(windows.kernel[i]);
    // A window that lies in the padding alone would have no maximum and an average of 0/0.
    if (windows.begin[i] >= windows.kernel[i] || windows.end[i] >= windows.kernel[i]) {
      return absl::InvalidArgumentError(
          absl::StrCat(op.name(), ": dim ", SpatialName(rank, i), ": padding ", windows.begin[i],
                       ",", windows.end[i], " is not less than the kernel, ", windows.kernel[i]));
    }
  }
  ISOMER_ASSIGN_OR_RETURN(const std::vector<int64_t> counts, CountWindows(op, windows, x));
  DeclarationBuilder d(shapes);
  std::vector<int> out = {d.Parallel("n", x[0]), d.Parallel("c", x[1])};
  std::vector<Index> in(out.begin(), out.end());
  const WindowDims dims = AddWindowDims(windows, counts, &d);
  out.insert(out.end(), dims.out.begin(), dims.out.end());
  in.insert(in.end(), dims.in.begin(), dims.in.end());
  const std::vector<Index> index(out.begin(), out.end());
  const bool padded = windows.padded();
  if (op.kind() == OpKind::kMaxPool) {
    d.OutputReduced(index, Reduction::kMax, dims.reduced,
                    d.In(0, in, padded ? Outside::kSkip : Outside::kNever));
  } else if (!padded || op.Int("count_include_pad") == 1) {
    d.OutputSum(index, dims.reduced,
                d.In(0, in, padded ? Outside::kZero : Outside::kNever) / elements);
  } else {
    const Expr count = d.Let("count", out, Reduction::kSum, dims.reduced, d.Inside(0, in));
    d.PromisePositive();  // The padding is less than the kernel.
    d.OutputSum(index, dims.reduced, d.In(0, in, Outside::kZero) / count);
  }
  return d.Build();
}

constexpr OperatorTraits kMaxPoolTraits = {
    .op_class = OperatorClass::kPooling,
    .takes = OperandTypes::kNumbers,
    .takes_channels_last = true,
    .examples = {{"MaxPool", "max_pool(kernel=[3,3],stride=[2,2],padding=[1,1,0,0]) f32[2,2,6,6]"},
                 {"MaxPool1d", "max_pool(kernel=[2],stride=[2],padding=[0,0]) f32[2,4,6]"},
                 {"MaxPool3d",
                  "max_pool(kernel=[2,3,1],stride=[1,2,1],padding=[1,0,0,0,1,0]) f32[2,2,2,4,2]"}}};
constexpr OperatorTraits kAvgPoolTraits = {
    .op_class = OperatorClass::kPooling,
    .takes_channels_last = true,
    .examples = {{"AvgPool", "avg_pool(kernel=[3,3],stride=[2,2],padding=[1,1,1,1]) f32[2,2,5,5]"},
                 {"AvgPool1d", "avg_pool(kernel=[3],stride=[1],padding=[0,2]) f32[2,4,6]"},
                 {"AvgPool3d",
                  "avg_pool(kernel=[2,2,2],stride=[2,1,2],padding=[0,0,0,0,0,0]) f32[2,2,4,3,2]"},
                 {"AvgPoolCountingPad",
                  "avg_pool(kernel=[3,3],stride=[2,2],padding=[1,1,1,1],count_include_pad=1) "
                  "f32[2,2,5,5]"}}};

// Window o of a dim of size I that has O of them is [floor(o*I/O), ceil((o+1)*I/O)). With I = O*K
// these are windows of K elements side by side, whose pieces are pieces of X:
// Y[n,c,o] = sum_r X[n,c,o*K+r] / K
// Else the windows may share elements, and differ in size:
// in(o,i) = [o*I < (i+1)*O] * [i*O < (o+1)*I];  count[o] = sum_i in(o,i)
// Y[n,c,o] = sum_i X[n,c,i] * in(o,i) / count[o]
// With several spatial dims, of either kind, the product of their in(o,i) and of their counts.
absl::StatusOr<Declaration> DeclareAdaptivePool(const Operator& op,
                                                absl::Span<const Shape> shapes) {
  const Shape& x = shapes[0];
  const std::vector<int64_t>& output = op.Ints("output");
  const int rank = static_cast<int>(output.size());
  if (rank < 1 || rank > 3) {
    return absl::InvalidArgumentError(absl::StrCat("adaptive_avg_pool: output [",
                                                   absl::StrJoin(output, ","), "] has ", rank,
                                                   " dims, not 1 to 3"));
  }
  ISOMER_RETURN_IF_ERROR(ExpectRank(op, shapes, 0, rank + 2));
  ISOMER_RETURN_IF_ERROR(ExpectConcreteSizes(op, shapes));
  DeclarationBuilder d(shapes);
  const int n = d.Parallel("n", x[0]), c = d.Parallel("c", x[1]);
  std::vector<Index> in = {n, c}, out = {n, c};
  std::vector<int> reduced;
  std::vector<Expr> inside, counts;  // Of the dims whose windows differ.
  double elements = 1;               // Of a window, in the others.
  for (int i = 0; i < rank; ++i) {
    const std::string name = SpatialName(rank, i);
    const int64_t size = x[2 + i].value();
    if (output[i] < 1 || output[i] > (int64_t{1} << 30)) {
      return absl::InvalidArgumentError(absl::StrCat("adaptive_avg_pool: ", output[i],
                                                     " windows of dim ", name, " of size ", size));
    }
    if (size % output[i] == 0) {
      const int64_t kernel = size / output[i];
      const int o = d.Parallel(name, output[i]), r = d.Whole("r" + name, kernel);
      in.push_back(Index(o) * kernel + Index(r));
      out.push_back(o);
      reduced.push_back(r);
      elements *= static_cast<double>(kernel);
      continue;
    }
    const int o = d.Spatial(name, output[i]), element = d.Whole("i" + name, size);
    const double in_size = static_cast<double>(size), out_size = static_cast<double>(output[i]);
    const Expr from = Coordinate(o) * in_size, at = Coordinate(element) * out_size;
    const Expr is_in = (from < at + out_size) * (at < from + in_size);
    inside.push_back(is_in);
    counts.push_back(d.Let("count_" + name, {o}, Reduction::kSum, {element}, is_in));
    d.PromisePositive();  // The window begins at an element and ends behind it.
    in.push_back(element);
    out.push_back(o);
    reduced.push_back(element);
  }
  Expr share = d.In(0, in) / elements;
  for (size_t i = 0; i < inside.size(); ++i) share = share * inside[i] / counts[i];
  d.OutputSum(out, reduced, share);
  return d.Build();
}

constexpr OperatorTraits kAdaptiveAvgPoolTraits = {
    .takes_channels_last = true,
    .examples = {{"AdaptiveAvgPool", "adaptive_avg_pool(output=[3,2]) f32[2,2,4,5]"},
                 {"AdaptiveAvgPoolGlobal", "adaptive_avg_pool(output=[1,1]) f32[2,4,3,3]"},
                 {"AdaptiveAvgPoolMixed", "adaptive_avg_pool(output=[2,3]) f32[2,2,4,5]"},
                 {"AdaptiveAvgPool1d", "adaptive_avg_pool(output=[4]) f32[2,4,6]"}}};

}  // namespace isomer
