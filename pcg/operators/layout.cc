// Operators that relabel elements: each output element is one input element.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "pcg/operators/operators.h"
#include "pcg/support/status_macros.h"

namespace isomer {

// Y[i_perm(0), i_perm(1), ..] = X[i_0, i_1, ..]
absl::StatusOr<Declaration> DeclareTranspose(const Operator& op, absl::Span<const Shape> shapes) {
  const Shape& x = shapes[0];
  const std::vector<int64_t>& perm = op.Ints("perm");
  std::vector<int64_t> sorted = perm;
  std::sort(sorted.begin(), sorted.end());
  bool is_permutation = sorted.size() == x.size();
  for (size_t i = 0; is_permutation && i < sorted.size(); ++i) {
    is_permutation = sorted[i] == static_cast<int64_t>(i);
  }
  if (!is_permutation) {
    return absl::InvalidArgumentError(absl::StrCat("transpose: perm [", absl::StrJoin(perm, ","),
                                                   "] is not a permutation of ", x.size(),
                                                   " dims"));
  }
  DeclarationBuilder d(shapes);
  const std::vector<int> i = d.Dims("i", DimKind::kParallel, x);
  std::vector<Index> out;
  for (int64_t p : perm) out.push_back(i[p]);
  d.Output(out, d.In(0, std::vector<Index>(i.begin(), i.end())));
  return d.Build();
}

constexpr OperatorTraits kTransposeTraits = {
    .op_class = OperatorClass::kLayout,
    .takes = OperandTypes::kAnything,
    .examples = {{"Transpose", "transpose(perm=[2,0,1]) f32[4,6,2]"}}};

// Row-major order is kept. The iteration dims are the coarsest dims of which both shapes are
// merges: [8,64] -> [8,4,16] iterates over (8,4,16). Where a dim of one side is made of several
// iteration dims, its pieces are pieces of the outermost of them: that one is parallel if it is
// outermost on both sides, the others stay whole. Runs of dims with no such dims ([4,6] -> [6,4])
// use division, and stay whole.
absl::StatusOr<Declaration> DeclareReshape(const Operator& op, absl::Span<const Shape> shapes) {
  std::vector<int64_t> in, out = op.Ints("shape");
  int64_t in_elements = 1, out_elements = 1;
  for (const Extent& size : shapes[0]) {
    if (!size.known()) return absl::UnimplementedError("reshape: needs concrete sizes");
    in.push_back(size.value());
    in_elements *= size.value();
  }
  for (int64_t size : out) {
    if (size < 1 || out_elements > (int64_t{1} << 48) / size) {
      return absl::InvalidArgumentError(
          absl::StrCat("reshape: size ", size, " in shape [", absl::StrJoin(out, ","), "]"));
    }
    out_elements *= size;
  }
  if (in_elements != out_elements) {
    return absl::InvalidArgumentError(
        absl::StrCat("reshape: [", absl::StrJoin(in, ","), "] has ", in_elements, " elements and [",
                     absl::StrJoin(out, ","), "] has ", out_elements));
  }
  DeclarationBuilder d(shapes);
  std::vector<Index> in_index(in.size()), out_index(out.size());
  size_t i = 0, o = 0;
  // Each round takes the shortest runs of dims in and out that have equally many elements.
  while (i < in.size() || o < out.size()) {
    if (i < in.size() && in[i] == 1) {
      ++i;
      continue;
    }
    if (o < out.size() && out[o] == 1) {
      ++o;
      continue;
    }
    const size_t i_begin = i, o_begin = o;
    int64_t i_product = in[i++], o_product = out[o++];
    while (i_product != o_product) {
      if (i_product < o_product) {
        i_product *= in[i++];
      } else {
        o_product *= out[o++];
      }
    }
    // The boundaries between dims, as strides of the run, from both sides.
    std::vector<int64_t> strides;
    auto add_strides = [&](const std::vector<int64_t>& sizes, size_t begin, size_t end) {
      int64_t stride = i_product;
      for (size_t s = begin; s < end; ++s) strides.push_back(stride /= sizes[s]);
    };
    add_strides(in, i_begin, i);
    add_strides(out, o_begin, o);
    std::sort(strides.rbegin(), strides.rend());
    strides.erase(std::unique(strides.begin(), strides.end()), strides.end());
    bool refinable = true;
    int64_t above = i_product;
    for (int64_t stride : strides) refinable &= above % stride == 0, above = stride;
    if (!refinable) {
      // The output must be affine in the iteration dims, so that it is iterated directly.
      Index linear;
      int64_t stride = i_product;
      for (size_t s = o_begin; s < o; ++s) {
        const int dim = d.Whole(absl::StrCat("i", s), out[s]);
        out_index[s] = dim;
        linear = linear + Index(dim) * (stride /= out[s]);
      }
      stride = i_product;
      for (size_t s = i_begin; s < i; ++s) {
        in_index[s] = linear;
        in_index[s].divide = stride /= in[s];
        in_index[s].modulo = in[s];
      }
      continue;
    }
    // One iteration dim between neighbouring boundaries.
    above = i_product;
    auto merge = [](const std::vector<int64_t>& sizes, size_t begin, size_t end, int64_t run,
                    int64_t stride, int dim, std::vector<Index>* index) {
      int64_t dim_stride = run;
      for (size_t s = begin; s < end; ++s) {
        const int64_t upper = dim_stride;
        dim_stride /= sizes[s];
        if (stride >= dim_stride && stride < upper) {
          (*index)[s] = (*index)[s] + Index(dim) * (stride / dim_stride);
          return;
        }
      }
    };
    for (int64_t stride : strides) {
      // Outermost on a side: the dim's upper boundary is a boundary of that side.
      auto starts_dim = [&](const std::vector<int64_t>& sizes, size_t begin, size_t end) {
        int64_t boundary = i_product;
        for (size_t s = begin; s < end; ++s) {
          if (boundary == above) return true;
          boundary /= sizes[s];
        }
        return false;
      };
      const bool parallel = starts_dim(in, i_begin, i) && starts_dim(out, o_begin, o);
      const int dim = d.Dim(absl::StrCat("r", o_begin, "_", stride),
                            parallel ? DimKind::kParallel : DimKind::kWhole, above / stride);
      merge(in, i_begin, i, i_product, stride, dim, &in_index);
      merge(out, o_begin, o, i_product, stride, dim, &out_index);
      above = stride;
    }
  }
  d.Output(out_index, d.In(0, in_index));
  return d.Build();
}

constexpr OperatorTraits kReshapeTraits = {
    .op_class = OperatorClass::kLayout,
    .takes = OperandTypes::kAnything,
    .attributes_change_time = false,
    .examples = {{"ReshapeSplit", "reshape(shape=[4,2,3,2]) f32[4,6,2]"},
                 {"ReshapeMerge", "reshape(shape=[24,2]) f32[4,6,2]"},
                 {"ReshapeIncommensurable", "reshape(shape=[6,4]) f32[4,6]"}}};

// Y[.., j, ..] = X_t[.., j - offset_t, ..] for the operand t in whose range j lies.
absl::StatusOr<Declaration> DeclareConcat(const Operator& op, absl::Span<const Shape> shapes) {
  const int rank = static_cast<int>(shapes[0].size());
  ISOMER_ASSIGN_OR_RETURN(const int axis, NormalizeAxis(op.Int("axis"), rank));
  Extent total;
  for (size_t t = 0; t < shapes.size(); ++t) {
    ISOMER_RETURN_IF_ERROR(ExpectRank(op, shapes, static_cast<int>(t), rank));
    for (int i = 0; i < rank; ++i) {
      if (i != axis && shapes[t][i] != shapes[0][i]) {
        return Mismatch(op, absl::StrCat("i", i), 0, shapes[0][i], static_cast<int>(t),
                        shapes[t][i]);
      }
    }
    total += shapes[t][axis];
  }
  DeclarationBuilder d(shapes);
  std::vector<Index> out;
  for (int i = 0; i < rank; ++i) {
    out.push_back(i == axis ? d.Whole("j", total) : d.Parallel(absl::StrCat("i", i), shapes[0][i]));
  }
  Expr body = 0.0;
  Extent offset;
  for (size_t t = 0; t < shapes.size(); ++t) {
    std::vector<Index> in = out;
    in[axis] = Shifted(in[axis], offset * -1);
    const Expr part = d.In(static_cast<int>(t), in, Outside::kZero);
    body = t == 0 ? part : body + part;
    offset += shapes[t][axis];
  }
  d.Output(out, body);
  return d.Build();
}

constexpr OperatorTraits kConcatTraits = {
    .op_class = OperatorClass::kLayout,
    .takes = OperandTypes::kAnything,
    .takes_channels_last = true,
    .examples = {{"Concat", "concat(axis=1) f32[4,6] f32[4,2] f32[4,1]"}}};

// Y_t[.., j, ..] = X[.., offset_t + j, ..]
absl::StatusOr<Declaration> DeclareSplit(const Operator& op, absl::Span<const Shape> shapes) {
  const Shape& x = shapes[0];
  ISOMER_ASSIGN_OR_RETURN(const int axis,
                          NormalizeAxis(op.Int("axis"), static_cast<int>(x.size())));
  const std::vector<Extent>& sizes = op.Extents("sizes");
  constexpr int64_t kLargest = int64_t{1} << 48;
  Extent total;
  for (const Extent& size : sizes) {
    if (size.known() && size.value() < 1) {
      return absl::InvalidArgumentError(
          absl::StrCat("split: size ", size.value(), " of a part is not positive"));
    }
    if ((size.known() && size.value() > kLargest) || (total.known() && total.value() > kLargest)) {
      return absl::InvalidArgumentError("split: parts of more than 2^48 elements");
    }
    total += size;
  }
  if (total != x[axis]) {
    return WithSizes(absl::InvalidArgumentError(absl::StrCat("split: parts ", AttributeText(sizes),
                                                             " do not add up to dim ", axis,
                                                             " of size ", x[axis].ToString())),
                     total, x[axis]);
  }
  DeclarationBuilder d(shapes);
  std::vector<Index> common(x.size());
  for (int i = 0; i < static_cast<int>(x.size()); ++i) {
    if (i != axis) common[i] = d.Parallel(absl::StrCat("i", i), x[i]);
  }
  Extent offset;
  for (size_t t = 0; t < sizes.size(); ++t) {
    std::vector<Index> out = common, in = common;
    out[axis] = d.Whole(absl::StrCat("j", t), sizes[t]);
    in[axis] = Shifted(out[axis], offset);
    d.Output(out, d.In(0, in));
    offset += sizes[t];
  }
  return d.Build();
}

constexpr OperatorTraits kSplitTraits = {
    .op_class = OperatorClass::kLayout,
    .takes = OperandTypes::kAnything,
    .most_outputs = 64,
    .attributes_change_time = false,
    .takes_channels_last = true,
    .examples = {{"Split", "split(axis=1,sizes=[2,4]) f32[4,6]"}}};

}  // namespace isomer
