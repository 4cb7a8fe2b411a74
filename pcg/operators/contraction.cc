// MatMul and Conv2d: sums of products.
#include <algorithm>

#include "absl/strings/cord.h"
#include "absl/strings/str_cat.h"
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

// Y[n,(g,o),y,x] = sum_{c,r,q} X[n,(g,c), y*stride+r*dilation-padding, x*..+q*..-..] *
// W[(g,o),c,r,q]
//
// stride and dilation are [y,x]; padding is [top, left, bottom, right]. One group: o is a parallel
// and c a sum dim. Several: the group is the parallel dim, and o and c stay whole.
absl::StatusOr<Declaration> DeclareConvolution(const Operator& op, absl::Span<const Shape> shapes) {
  ISOMER_RETURN_IF_ERROR(ExpectRank(op, shapes, 0, 4));
  ISOMER_RETURN_IF_ERROR(ExpectRank(op, shapes, 1, 4));
  const Shape &x = shapes[0], &w = shapes[1];
  const auto &stride = op.Ints("stride"), &padding = op.Ints("padding"),
             &dilation = op.Ints("dilation");
  const int64_t groups = op.Int("groups");
  if (stride.size() != 2 || dilation.size() != 2 || padding.size() != 4 || groups < 1 ||
      std::min({stride[0], stride[1], dilation[0], dilation[1]}) < 1 ||
      *std::min_element(padding.begin(), padding.end()) < 0) {
    return absl::InvalidArgumentError(
        "conv2d: stride and dilation are [y,x] >= 1, padding is [top,left,bottom,right] >= 0, "
        "groups >= 1");
  }
  for (const Shape& shape : shapes) {
    for (const Extent& size : shape) {
      if (!size.known()) return absl::UnimplementedError("conv2d: needs concrete sizes");
    }
  }
  if (x[1] != w[1] * groups)
    return Mismatch(op, "c (channels per group times groups)", 0, x[1], 1, w[1] * groups);
  if (w[0].value() % groups != 0) {
    return absl::InvalidArgumentError(absl::StrCat(
        "conv2d: ", w[0].ToString(), " output channels do not divide into ", groups, " groups"));
  }
  int64_t out[2];
  for (int i = 0; i < 2; ++i) {
    const int64_t extent = dilation[i] * (w[2 + i].value() - 1) + 1;
    out[i] = (x[2 + i].value() + padding[i] + padding[2 + i] - extent) / stride[i] + 1;
    if (x[2 + i].value() + padding[i] + padding[2 + i] < extent) {
      return absl::InvalidArgumentError(absl::StrCat("conv2d: dim ", i == 0 ? "y" : "x",
                                                     ": the kernel spans ", extent,
                                                     ", more than the padded size of operand 0"));
    }
  }
  DeclarationBuilder d(shapes);
  const int n = d.Parallel("n", x[0]);
  Index out_channel, in_channel, c;
  if (groups == 1) {
    out_channel = d.Parallel("o", w[0]);
    in_channel = c = d.Sum("c", w[1]);
  } else {
    const int g = d.Parallel("g", groups), o = d.Whole("o", w[0].value() / groups);
    c = d.Whole("c", w[1]);
    out_channel = Index(g) * (w[0].value() / groups) + Index(o);
    in_channel = Index(g) * w[1].value() + c;
  }
  const int oy = d.Spatial("y", out[0]), ox = d.Spatial("x", out[1]);
  const int r = d.Whole("r", w[2]), q = d.Whole("q", w[3]);
  const Index in_y = Shifted(Index(oy) * stride[0] + Index(r) * dilation[0], -padding[0]);
  const Index in_x = Shifted(Index(ox) * stride[1] + Index(q) * dilation[1], -padding[1]);
  const bool padded = *std::max_element(padding.begin(), padding.end()) > 0;
  d.OutputSum({n, out_channel, oy, ox}, {c.terms[0].first, r, q},
              d.In(0, {n, in_channel, in_y, in_x}, padded ? Outside::kZero : Outside::kNever) *
                  d.In(1, {out_channel, c, r, q}));
  return d.Build();
}

}  // namespace isomer
