// Convolutions over one to three spatial dims; r q (p r q) run over the kernel, y x (z y x) over
// the windows. Depthwise is groups = c.
#include <utility>

#include "absl/strings/str_cat.h"
#include "pcg/operators/operators.h"
#include "pcg/operators/window.h"
#include "pcg/support/status_macros.h"

namespace isomer {
namespace {

// Channels of both sides. One group: o is a parallel and c a sum dim. Several: the group is the
// parallel dim, and o and c stay whole.
struct Channels {
  Index in, out;  // of the tensors: g*C+c, g*O+o
  int c, o;       // within a group
};

Channels AddChannelDims(int64_t groups, int64_t in, int64_t out, DeclarationBuilder* d) {
  Channels channels;
  if (groups == 1) {
    channels.out = channels.o = d->Parallel("o", out);
    channels.in = channels.c = d->Sum("c", in);
    return channels;
  }
  const int g = d->Parallel("g", groups);
  channels.o = d->Whole("o", out / groups);
  channels.c = d->Whole("c", in / groups);
  channels.out = Index(g) * (out / groups) + Index(channels.o);
  channels.in = Index(g) * (in / groups) + Index(channels.c);
  return channels;
}

// Kernel sizes of w[a,b,kernel..]; checks the ranks and that what groups divide is divided.
absl::StatusOr<Windows> ReadConvolution(const Operator& op, absl::Span<const Shape> shapes,
                                        int rank) {
  ISOMER_RETURN_IF_ERROR(ExpectRank(op, shapes, 0, rank + 2));
  ISOMER_RETURN_IF_ERROR(ExpectRank(op, shapes, 1, rank + 2));
  ISOMER_RETURN_IF_ERROR(ExpectConcreteSizes(op, shapes));
  const int64_t groups = op.Int("groups"), channels = shapes[1][0].value();
  if (groups < 1 || channels % groups != 0) {
    return absl::InvalidArgumentError(absl::StrCat(op.name(), ": ", channels,
                                                   " channels, dim 0 of operand 1, do not divide "
                                                   "into ",
                                                   groups, " groups"));
  }
  std::vector<int64_t> kernel;
  for (int i = 0; i < rank; ++i) kernel.push_back(shapes[1][2 + i].value());
  return ReadWindows(op, std::move(kernel));
}

std::vector<Index> Join(std::vector<Index> indices, const std::vector<Index>& spatial) {
  indices.insert(indices.end(), spatial.begin(), spatial.end());
  return indices;
}

std::vector<Index> Indices(const std::vector<int>& dims) { return {dims.begin(), dims.end()}; }

}  // namespace

// Y[n,(g,o),y,x] =
//     sum_{c,r,q} X[n,(g,c), y*stride+r*dilation-padding, x*..+q*..-..] * W[(g,o),c,r,q]
absl::StatusOr<Declaration> DeclareConvolution(const Operator& op, absl::Span<const Shape> shapes) {
  const Shape &x = shapes[0], &w = shapes[1];
  const int rank = op.kind() == OpKind::kConv1d ? 1 : op.kind() == OpKind::kConv2d ? 2 : 3;
  ISOMER_ASSIGN_OR_RETURN(const Windows windows, ReadConvolution(op, shapes, rank));
  const int64_t groups = op.Int("groups");
  if (x[1] != w[1] * groups) {
    return Mismatch(op, "c (channels per group times groups)", 0, x[1], 1, w[1] * groups);
  }
  ISOMER_ASSIGN_OR_RETURN(const std::vector<int64_t> counts, CountWindows(op, windows, x));
  DeclarationBuilder d(shapes);
  const int n = d.Parallel("n", x[0]);
  const Channels channels = AddChannelDims(groups, x[1].value(), w[0].value(), &d);
  const WindowDims dims = AddWindowDims(windows, counts, &d);
  std::vector<int> reduced = {channels.c};
  reduced.insert(reduced.end(), dims.reduced.begin(), dims.reduced.end());
  const Outside outside = windows.padded() ? Outside::kZero : Outside::kNever;
  d.OutputSum(Join({n, channels.out}, Indices(dims.out)), reduced,
              d.In(0, Join({n, channels.in}, dims.in), outside) *
                  d.In(1, Join({channels.out, channels.c}, Indices(dims.reduced))));
  return d.Build();
}

constexpr OperatorTraits kConv1dTraits = {
    .op_class = OperatorClass::kConvolution,
    .examples = {
        {"Conv1d", "conv1d(stride=[1],padding=[1,1],dilation=[1]) f32[2,4,6] f32[6,4,3]"},
        {"Conv1dCausal", "conv1d(stride=[1],padding=[4,0],dilation=[2]) f32[2,2,6] f32[4,2,3]"}}};
constexpr OperatorTraits kConv2dTraits = {
    .op_class = OperatorClass::kConvolution,
    .examples = {
        {"Conv2d",
         "conv2d(stride=[1,1],padding=[1,1,1,1],dilation=[1,1]) f32[2,4,4,4] f32[6,4,3,3]"},
        {"Conv2dStrided",
         "conv2d(stride=[2,1],padding=[0,1,1,0],dilation=[1,1]) f32[2,2,5,4] f32[2,2,3,2]"},
        {"Conv2dGroups",
         "conv2d(stride=[1,1],padding=[1,1,1,1],dilation=[1,1],groups=2) f32[2,4,3,3] "
         "f32[6,2,3,3]"},
        {"Conv2dDilated",
         "conv2d(stride=[1,2],padding=[2,0,1,1],dilation=[2,1]) f32[2,2,5,4] f32[2,2,3,2]"},
        {"Conv2dDepthwise",
         "conv2d(stride=[1,1],padding=[1,1,1,1],dilation=[1,1],groups=4) f32[2,4,3,3] "
         "f32[4,1,3,3]"}}};
constexpr OperatorTraits kConv3dTraits = {
    .op_class = OperatorClass::kConvolution,
    .examples = {{"Conv3d",
                  "conv3d(stride=[1,1,1],padding=[1,1,0,0,1,0],dilation=[1,1,1]) f32[2,2,2,4,3] "
                  "f32[4,2,2,3,1]"},
                 {"Conv3dStrided",
                  "conv3d(stride=[2,1,2],padding=[0,1,1,1,0,1],dilation=[1,2,1],groups=2) "
                  "f32[2,2,3,3,4] f32[2,1,2,2,3]"}}};

// The gradient of a convolution: X[n,c,y,x] adds to Y at y*stride + r*dilation - padding. Read from
// Y's side, with terms only where the division is exact:
// Y[n,(g,o),y,x] =
//     sum_{c,r,q} X[n,(g,c), (y+padding-r*dilation)/stride, (x+..-q*..)/..] * W[(g,c),o,r,q]
// y runs to (Y_in - 1)*stride + span of the kernel - paddings + output_padding.
absl::StatusOr<Declaration> DeclareConvTranspose(const Operator& op,
                                                 absl::Span<const Shape> shapes) {
  const Shape &x = shapes[0], &w = shapes[1];
  const int rank = static_cast<int>(x.size()) - 2;
  if (rank < 1 || rank > 3) {
    return absl::InvalidArgumentError(
        absl::StrCat("conv_transpose: operand 0 has rank ", rank + 2, ", not 3 to 5"));
  }
  ISOMER_ASSIGN_OR_RETURN(const Windows windows, ReadConvolution(op, shapes, rank));
  if (x[1] != w[0]) return Mismatch(op, "c", 0, x[1], 1, w[0]);
  const std::vector<int64_t>& extra = op.Ints("output_padding");
  if (static_cast<int>(extra.size()) != rank) {
    return absl::InvalidArgumentError(
        absl::StrCat("conv_transpose: output_padding has ", extra.size(), " numbers, not ", rank));
  }
  const int64_t groups = op.Int("groups");
  DeclarationBuilder d(shapes);
  const int n = d.Parallel("n", x[0]);
  const Channels channels = AddChannelDims(groups, x[1].value(), w[1].value() * groups, &d);
  std::vector<Index> in = {n, channels.in}, kernel = {channels.in, channels.o},
                     out = {n, channels.out};
  std::vector<int> reduced = {channels.c};
  for (int i = 0; i < rank; ++i) {
    constexpr int64_t kLargest = int64_t{1} << 30;  // products of two do not overflow
    const std::string name = SpatialName(rank, i);
    const int64_t image = x[2 + i].value();
    if (image > kLargest || extra[i] < 0 || extra[i] > kLargest) {
      return absl::InvalidArgumentError(absl::StrCat("conv_transpose: dim ", name, " of size ",
                                                     image, " with output_padding ", extra[i],
                                                     "; at most ", kLargest));
    }
    const int64_t size = (image - 1) * windows.stride[i] + windows.Span(i) - windows.begin[i] -
                         windows.end[i] + extra[i];
    if (size < 1) {
      return absl::InvalidArgumentError(absl::StrCat("conv_transpose: dim ", name,
                                                     ": output of size ", size,
                                                     " with output_padding ", extra[i]));
    }
    const int y = d.Spatial(name, size), r = d.Whole("r" + name, windows.kernel[i]);
    Index source = Shifted(Index(y) + Index(r) * -windows.dilation[i], Extent(windows.begin[i]));
    source.divide = windows.stride[i];
    source.exact = true;
    in.push_back(source);
    kernel.push_back(r);
    out.push_back(y);
    reduced.push_back(r);
  }
  d.OutputSum(out, reduced, d.In(0, in, Outside::kZero) * d.In(1, kernel));
  return d.Build();
}

constexpr OperatorTraits kConvTransposeTraits = {
    .op_class = OperatorClass::kTransposedConvolution,
    .examples = {{"ConvTranspose1d",
                  "conv_transpose(stride=[2],padding=[1,1],dilation=[1],output_padding=[1]) "
                  "f32[2,4,4] f32[4,6,3]"},
                 {"ConvTranspose2d",
                  "conv_transpose(stride=[2,1],padding=[0,1,1,0],dilation=[1,2],output_padding=[1,"
                  "0]) f32[2,4,3,2] f32[4,2,3,2]"},
                 {"ConvTransposeGroups",
                  "conv_transpose(stride=[2,2],padding=[0,0,0,0],dilation=[1,1],output_padding=[0,"
                  "0],groups=2) f32[2,4,2,2] f32[4,2,2,2]"},
                 {"ConvTranspose3d",
                  "conv_transpose(stride=[1,2,1],padding=[1,0,0,0,0,1],dilation=[1,1,1],output_"
                  "padding=[0,0,0]) f32[2,2,2,2,3] f32[2,2,2,3,2]"}}};

}  // namespace isomer
